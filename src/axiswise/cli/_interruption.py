"""The message and exit code of work that was interrupted and that the same command resumes."""

import shlex
import sys

import typer

INTERRUPTED = 130  # exit code after SIGINT or SIGTERM


def interrupted() -> typer.Exit:
    """Prints how to resume, and returns the exit to raise.

    Example:
        >>> raise interrupted()  # doctest: +SKIP
        axiswise: interrupted; the same command resumes: axiswise run quickstart
    """
    command = shlex.join(["axiswise", *sys.argv[1:]])
    typer.echo(f"axiswise: interrupted; the same command resumes: {command}", err=True)
    return typer.Exit(INTERRUPTED)
