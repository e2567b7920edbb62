"""``python -m axiswise`` is the command `axiswise`, also where only the source tree is at hand."""

from axiswise.cli import main

if __name__ == "__main__":
    main()
