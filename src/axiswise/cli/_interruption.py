"""What is said when work is interrupted that the same command resumes."""

import shlex
import sys

import typer

INTERRUPTED = 130  # exit code after SIGINT or SIGTERM


def interrupted() -> typer.Exit:
    """Says how to resume, and gives the exit to raise."""
    command = shlex.join(["axiswise", *sys.argv[1:]])
    typer.echo(f"axiswise: interrupted; the same command resumes: {command}", err=True)
    return typer.Exit(INTERRUPTED)
