"""What a command that fails prints, and its exit code: one line, and a log of what nobody foresaw."""

import os
import shlex
import sys
import tempfile
import traceback
from importlib.util import find_spec
from pathlib import Path

import typer

from axiswise.errors import AxiswiseError, StudyIncomplete

FAILED, MISTAKE = 1, 2  # exit codes: a run or axiswise failed; something that the user can fix
UsageError = typer.BadParameter.__base__ or typer.BadParameter  # click's, or that of typer's own copy of click
OURS = ("axiswise", "axiswise_papers", "axiswise_benchmarks")


def failure(error: BaseException) -> tuple[str, int]:
    r"""The line and the exit code of a command that an error ended.

    A mistake of the user's is told by its message alone: :class:`AxiswiseError`, a file that the system refuses, an
    option that does not exist. All else was not foreseen, so that its traceback goes to a log. If it was raised by code
    of the user's, or beneath it, it is the user's too; if not, it is a fault of axiswise.

    Example:
        >>> failure(AxiswiseError("`beta` must be positive.\nGot -1."))
        ('`beta` must be positive. Got -1.', 2)
    """
    if isinstance(error, StudyIncomplete):
        return printable(str(error)), FAILED  # a line for each run
    if isinstance(error, UsageError):
        return one_line(_usage(error)), MISTAKE
    if isinstance(error, AxiswiseError | OSError):
        return one_line(str(error) or type(error).__name__), MISTAKE
    if isinstance(error, SystemExit):
        return one_line(f"code that this command called has ended it by sys.exit({error.code!r})."), MISTAKE
    from axiswise.studies import describe_error

    words, log = one_line(describe_error(error)), _log(error)
    if isinstance(error, MemoryError):
        return f"there is not enough memory: {words}. {log}", MISTAKE
    if _raised_by_own_code(error):
        return f"your code raised {words}. {log}", MISTAKE
    return f"this is a fault of axiswise, please report it: {words}. {log}", FAILED


def one_line(text: str) -> str:
    r"""A text without line breaks and control characters, which a file or an argument may have put into it.

    Example:
        >>> one_line("first\n  second \x1b[31mred")
        'first second \\x1b[31mred'
    """
    return printable(" ".join(line.strip() for line in text.splitlines() if line.strip()))


def printable(text: str) -> str:
    r"""A text with control characters other than line breaks, and lone surrogates, as escapes.

    Example:
        >>> printable("caf\u00e9\n\x07")
        'café\n\\x07'
    """
    return "".join(
        letter if letter.isprintable() or letter == "\n" else letter.encode("unicode_escape").decode()
        for letter in text
    )


def help_of(error: BaseException) -> str | None:
    """The help of a command that was called without any of its own, as it is printed; None for any other error."""
    return getattr(error, "message", None) if type(error).__name__ == "NoArgsIsHelpError" else None


def _usage(error: BaseException) -> str:
    """What is wrong with the arguments, and how to see which there are."""
    message = getattr(error, "format_message", lambda: str(error))() or "Expected a command"
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "axiswise"
    ended = message if message.endswith("?") else f"{message.rstrip('.')}."
    return f"{ended} `{command} --help` shows what there is."


def _raised_by_own_code(error: BaseException) -> bool:
    """Whether a frame of the traceback is of code that is neither installed nor a package of this project."""
    from axiswise.records._fingerprint import is_installed

    ours = [Path(spec.origin).parent for spec in map(find_spec, OURS) if spec and spec.origin]
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_file()]
    return any(not is_installed(file) and not set(ours) & set(Path(file).parents) for file in files)


def _log(error: BaseException) -> str:
    """Writes the traceback into a new file, and says where."""
    from axiswise.records import versions

    about = {"command": shlex.join(["axiswise", *sys.argv[1:]]), "folder": Path.cwd(), **versions()}
    lines = [f"{name}: {value}" for name, value in about.items()]
    text = "\n".join([*lines, "", "".join(traceback.format_exception(error))])
    try:
        number, path = tempfile.mkstemp(prefix="axiswise-", suffix=".log")
        with os.fdopen(number, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as reason:
        return f"Its traceback could not be written ({one_line(str(reason))})."
    return f"Its traceback is in {path}"
