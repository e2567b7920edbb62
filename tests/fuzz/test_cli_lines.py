"""Hostile command lines, made from the program itself, so that a new command or option is among them.

Every line is called in this process, through the program's own `main`, in a folder of good and bad files. Judged are
the exit code and what was printed: no traceback; 0 for success only; 2 and one line for a mistake; and never 1 with a
log, which would be a fault of ours. ``AXISWISE_FUZZ_CALLS`` is the number of lines and ``AXISWISE_FUZZ_SEED`` the seed.
"""

import contextlib
import importlib.util
import inspect
import io
import itertools
import os
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import typing
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from axiswise.cli import app, main

CALLS = int(os.environ.get("AXISWISE_FUZZ_CALLS", "400"))
SEED = os.environ.get("AXISWISE_FUZZ_SEED", "0")
PARTS = 4  # tests that share the lines
SECONDS = 1.0  # after which a line counts as one that was taken: it is training
ROOM = 8 << 30  # bytes that a line may take besides what the process has: a bomb must not get them
HEAVY = ("attack", "bench", "verify")  # these compute for long, so that fewer lines are of them

NUMBERS = [
    *("0", "-1", "1", "3", "2", "-0", "nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "1e400", "0.5", "1e5", "007"),
    *map(str, (2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400)),
    "9" * 5000,
    *("1_000", "0x10", "٣", "½", "", " ", "true", "None", "1,2", "1:2", "3;", "--", "-", "π", "😀"),
]
WORDS = [
    *("", " ", ".", "..", "/", "~", "-", "--", "*", "?", "%s", "{}", "{0}", "\\", "'", '"', "`id`", "$(id)", ";", "|"),
    *("\n", "\t", "\x1b[31m", "\x07", "\ud8ff", "\udce9", "e\u0301", "İ", "ß", "\u202egnp", "😀" * 50, "x" * 5000),
    *(":", "::", "a:b", "sys:exit", "os:abort", "os:_exit", "builtins:exit", "builtins:quit", "os:system", "math:pi"),
    *("bad:leave", "bad:leave_in_words", "bad:fail", "bad:endless", "bad:greedy", "raises:x", "leaves:x", "syntax:x"),
    *("no_text:x", "good:missing", "good:pair", "good:study", "bad.py:fail", "leaves.py:x", "/nowhere.py:x", ".py:x"),
    *("bad:study_of_leaving", "bad:study_of_failing", "bad:measure_of_leaving", "bad:measure_of_failing"),
    *("bad:no_runs", "bad:text", "bad:named_badly", "bad:encoder_leaves", "bad:encoder_fails", "bad:decoder_leaves"),
    *("bad:decoder_fails", "bad:decoder_endless", "bad:nothing", "bad:words", "bad:nan", "interrupts:call"),
    *("mig", "MIG,dci", "mig,", ",", "beta_vae", "udr", "discrete", "continuous,circular", "shape", "f0,f1", "f9"),
    *("smoke", "paper", "quickstart", "quickstart.x", "sikka.prop4", "cpu", "cuda", "cuda:99", "meta", "mps", "cpu:-1"),
    *("fp32", "bf16", "onnx", "torch-export", "state-dict", "bernoulli", "gaussian", "gaussian:nan", "gaussian:1e308"),
    *("gaussian:1e-320", "gaussian:0.1", "unknown", "npz", "image_folder", "celeba", "pinwheel", "small_sprites"),
    *("1:2:3", "1:2:1000000000", "1e-308:1e308:9", "0.5,1", "1e308", "1,1e308", "-1", "nan", "0", "1", "2" * 400),
    *("two.npz:codes", "two.npz:missing", "two.npz:", "x.safetensors:x", "x.safetensors:y", "codes.npy:x", "codes.NPY"),
    *("codes.npy", "factors.npy", "codes.csv", "factors.csv", "factors.tsv", "factors.parquet", "x.safetensors"),
]
PATHS = [
    *("", ".", "new", "new.json", "new/deep/er", "codes.npy", "run", "run/run.json", "good.py", "pictures", "~x"),
    *("/dev/null", "/dev/full", "/proc/self/mem", "/proc/1/x", "/proc/nowhere/x", "codes.npy/x", "loop", "loop/x", "-"),
    *("x" * 300, "\n", "\x1b[31m", "\udce9", "😀.json", "new.png", "new.html", "images.npz", "mixing.npy", "link.npy"),
    *("--json", "file:///etc/passwd", "https://example.invalid/x.npy", "a\\b", "con", "nul:", "two.npz:codes"),
]
GOOD = {
    "run": ["good.py:study", "--scale", "smoke", "--workers", "1"],
    "score": ["codes.npy", "factors.npy", "--scores", "mig"],
    "explain": ["good:pair", "--data", "codes.npy", "--points", "4"],
    "export": ["run", "--member", "0"],
    "report": ["run"],
    "status": ["run"],
    "theory": ["--dimension", "3", "--betas", "0.5,1"],
    "attack": ["small_sprites", "--budget", "1", "--seeds", "1", "--objectives", "BetaVAE"],
    "data get": ["npz", "--path", "images.npz"],
    "data show": ["npz", "--path", "images.npz"],
    "verify": ["sikka.prop4", "--scale", "smoke", "--results", "new"],
    "gallery": ["odd_results"],
}
INTERRUPTED = 130
LOG = re.compile(r"Its traceback is in (.+)$")


class Endless(KeyboardInterrupt):
    """The time of a line is over: it is interrupted, as by Ctrl-C."""


class Outcome(NamedTuple):
    """What a line did; the code is INTERRUPTED if it was still working when its time was over."""

    code: int | str
    out: str
    err: str


def helper(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


files = helper("cli_hostile_files")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with every file, and in it the folder that lines are called in."""
    place = tmp_path_factory.mktemp("lines") / "inner"
    place.mkdir()
    files.write_good(place)
    with contextlib.chdir(place):  # what is imported now is not interrupted later
        for name, words in GOOD.items():
            if name.split()[0] not in (*HEAVY, "gallery"):
                ended = called([*name.split(), *words], limited=contextlib.nullcontext)
                assert ended.code == 0, (name, ended)
    PATHS.extend(name for name in files.write_bad(place) if name not in PATHS)
    WORDS.extend(name for name in PATHS if "." in name and name not in WORDS)
    return place


def commands(group=None, path=()):
    """Every command of the program, by its name."""
    group = typer.main.get_command(app) if group is None else group
    found = {}
    for name, command in group.commands.items():
        found |= (
            commands(command, (*path, name)) if hasattr(command, "commands") else {" ".join((*path, name)): command}
        )
    return found


def value(kind, draw):
    """A value for a parameter of that type; most of them are wrong."""
    kinds = {kind, *typing.get_args(kind)}
    if kinds & {int, float}:
        return draw.choice(NUMBERS if draw.random() < 0.9 else WORDS)
    if Path in kinds:
        return draw.choice(PATHS)
    return draw.choice(draw.choice([WORDS, WORDS, PATHS, NUMBERS]))


def option(parameter, kind, draw):
    name = draw.choice([*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return [name] if draw.random() < 0.9 else [f"{name}={draw.choice(WORDS)}"]
    text = value(kind, draw)
    return [name, text] if draw.random() < 0.9 else [f"{name}={text}"]


def line(name, command, draw):
    """A command line: a good one with a few changes, or one whose every word is drawn; and now and then nonsense."""
    options = [each for each in command.params if each.param_type_name == "option"]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    kinds = typing.get_type_hints(inspect.unwrap(command.callback))
    if name in GOOD and draw.random() < 0.7:
        words = list(GOOD[name])
        for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
            if arguments and draw.random() < 0.4:
                words[draw.randrange(min(len(arguments), len(words)))] = value(kinds[draw.choice(arguments).name], draw)
            elif options:
                chosen = draw.choice(options)
                words += option(chosen, kinds.get(chosen.name), draw)
    else:
        words = [value(kinds[each.name], draw) for each in arguments if draw.random() < 0.95]
        for each in draw.sample(options, draw.randrange(min(4, len(options) + 1))):
            words += option(each, kinds.get(each.name), draw)
    if draw.random() < 0.08:
        place = draw.randrange(len(words) + 1)
        words[place:place] = draw.choice(
            [["--nonsense"], ["extra"], ["--"], ["--json"], ["-x"], ["--help"], ["--out", "--out"]]
        )
    return [*name.split(), *words]


@contextlib.contextmanager
def limits():
    """A time for a line, and a room for its memory."""

    def over(number, frame):
        raise Endless

    before = {number: signal.signal(number, over) for number in (signal.SIGPROF, signal.SIGALRM)}
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, hard))
    signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)  # of the processor: others may use the machine, too
    signal.setitimer(signal.ITIMER_REAL, 60 * SECONDS, SECONDS)
    try:
        yield
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def called(words, encoding="utf-8", limited=limits):
    """Calls the program's `main` with these words, as the shell would."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for _ in range(2)]
    before = sys.argv, sys.stdout, sys.stderr, list(sys.path)
    try:
        sys.argv, sys.stdout, sys.stderr = ["axiswise", *words], *streams
        with warnings.catch_warnings(), limited():
            warnings.simplefilter("default")
            main()
    except SystemExit as ended:
        code = 0 if ended.code is None else ended.code
    except Endless:
        code = INTERRUPTED
    except BaseException as escaped:  # what python would print a traceback of
        code = f"{type(escaped).__name__}: {escaped}"
    finally:
        sys.argv, sys.stdout, sys.stderr, sys.path[:] = before
    return Outcome(code, *(stream.buffer.getvalue().decode(encoding, "replace") for stream in streams))


def fault(words, outcome):
    """What is wrong with how a line ended; None if nothing is."""
    code, out, err = outcome
    lines = [
        each for each in err.splitlines() if not re.match("axiswise: warning: |axiswise: The .* is left out", each)
    ]
    errors = [each for each in lines if each.startswith("axiswise: ")]
    rest = [each for each in lines if each not in errors]
    if code == INTERRUPTED:
        return None
    if "Traceback (most recent call last)" in out + err:
        return "a traceback was printed"
    if code == 0:
        written = [file for word, file in itertools.pairwise(words) if word == "--json" and "--help" not in words]
        if errors or any(not Path(name).exists() for name in written):
            return "exit code 0, but it failed"
        return "something else on standard error" if rest else None
    if code == 2:
        return None if len(errors) == 1 and not rest else "exit code 2 without one line"
    if code == 1 and ((errors and "runs failed" in errors[0]) or "lower verdict" in err):
        return None
    return f"exit code {code}"


@pytest.mark.fuzz
@pytest.mark.usefixtures("as_installed")
# The end of a line's time may fall into a function that cannot raise; the timer tries again.
@pytest.mark.filterwarnings("ignore:(?s).*Endless:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_hostile_lines_end_in_one_line_and_the_right_code(folder, monkeypatch, part, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("AXISWISE_DATA", str(folder / "data"))
    monkeypatch.setenv("AXISWISE_CACHE", str(folder / "cache"))
    monkeypatch.setattr("socket.socket.connect", refuse)
    draw, known, counts, wrong = random.Random(f"{SEED}/{part}"), commands(), {}, []
    around = sorted(folder.parent.iterdir())
    weights = [0.3 if name.split()[0] in HEAVY else 1.0 for name in known]
    for number in range(CALLS // PARTS):
        (name,) = draw.choices(list(known), weights)
        words = line(name, known[name], draw)
        outcome = called(words, draw.choice(["utf-8", "utf-8", "ascii"]))
        if problem := fault(words, outcome):
            log = LOG.search(outcome.err)
            more = Path(log[1]).read_text()[-1500:] if log else ""
            wrong.append(f"{number} {shlex.join(words)[:600]!r}: {problem}\n    {outcome.err[-700:]}\n{more}")
        counts[outcome.code] = counts.get(outcome.code, 0) + 1
    assert sorted(folder.parent.iterdir()) == around
    assert not (folder / files.CANARY).exists()
    with capsys.disabled():
        print(f"\npart {part}: {CALLS // PARTS} lines, by exit code {counts}; {len(wrong)} wrong")
    assert not wrong, "\n\n".join(wrong)
    assert counts[0] > 0 < counts[2]  # lines of both kinds were drawn


@pytest.mark.fuzz
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["explain", "sys:exit", "--data", "codes.npy"], 2),
        (["score", "huge.npy", "bomb.npz"], 2),
        (["status", "deep_study"], 2),
        (["explain", "bad:decoder_fails", "--data", "codes.npy", "--points", "4"], 2),
        (["theory", "--dimension", "3", "--out", b"caf\xe9"], 0),  # a name that is no text, and a terminal without β
    ],
)
def test_the_same_of_real_processes(folder, tmp_path, words, code):
    done = subprocess.run(
        [sys.executable, "-m", "axiswise", *words],
        capture_output=True,
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == code, done
    assert b"Traceback" not in done.stdout + done.stderr
    assert done.stderr.count(b"\n") == (1 if code else 0)


def refuse(*arguments):
    raise OSError("no network here")
