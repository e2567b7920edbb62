"""``python -m axiswise_papers`` is the command `axiswise` with this package's commands, without any installation.

Studies are then named by their module: ``python -m axiswise_papers run axiswise_papers.sikka2019:figure_1``.
"""

from axiswise.cli import add_command, main
from axiswise_papers._commands import gallery, verify

if __name__ == "__main__":
    add_command("verify", verify)
    add_command("gallery", gallery)
    main()
