"""Files for the campaigns against the command line and the readers of files: good ones, and ones that nobody wrote."""

import io
import json
import struct
import textwrap
import zlib

import numpy as np
import pandas as pd
from PIL import Image
from safetensors.numpy import save_file

import axiswise as aw

CANARY = "canary"  # whatever executes a file's contents makes a file of this name

MODULES = {
    "good": """
        import torch
        import axiswise as aw

        def encode(x):
            return x[:, :2].double(), torch.full((len(x), 2), -2.0).double()

        def decode(z):
            return torch.cat([z, z[:, :1]], -1)

        def pair():
            return encode, decode

        def square():
            return aw.data.synth_linear(samples=30)

        def study(scale):
            members = aw.grid(model=aw.models.linear(3, 2), objective=aw.objectives.BetaVAE(), steps=2, batch=4)
            return [aw.studies.Run("one", square, members, [aw.scores.mig])]
    """,
    "bad": """
        import sys
        from functools import partial
        import torch
        import axiswise as aw
        from good import decode, encode, study as good_study

        def leave(*arguments, **options):
            sys.exit(0)

        def leave_in_words():
            sys.exit("done")

        def fail(*arguments, **options):
            raise KeyError("two\\nlines \\x1b[31m")

        def endless(*arguments):
            return endless(*arguments)

        def greedy(*arguments):
            return [torch.zeros(10**13)]

        def of(dataset, measure=aw.scores.mig):
            (run,) = good_study("smoke")
            return [aw.studies.Run(run.name, dataset, run.members, [measure])]

        study_of_leaving, study_of_failing = (lambda scale: of(leave)), (lambda scale: of(fail))
        measure_of_leaving, measure_of_failing = (lambda scale: of(good_study("smoke")[0].dataset, leave)), (
            lambda scale: of(good_study("smoke")[0].dataset, fail)
        )
        no_runs, text, named_badly = (lambda scale: []), (lambda scale: "runs"), (
            lambda scale: [aw.studies.Run("../out", leave, [], [])]
        )
        encoder_leaves, encoder_fails, decoder_leaves, decoder_fails, decoder_endless = (
            lambda: (leave, decode), lambda: (fail, decode), lambda: (encode, leave), lambda: (encode, fail),
            lambda: (encode, endless),
        )
        nothing, words, nan = (lambda: (lambda x: None, decode)), (lambda: (lambda x: "x", decode)), (
            lambda: (lambda x: (x * float("nan"), x * float("nan")), decode)
        )
    """,
    "raises": "raise RuntimeError('of the module')",
    "leaves": "import sys; sys.exit(0)",
    "interrupts": "class Odd(BaseException): pass\ndef call(): raise Odd('odd')",
    "syntax": "def broken(:",
    "no_text": "\xff\xfe",
}


def write_good(folder):
    """Small files of every kind that a command reads."""
    draw = np.random.default_rng(0)
    codes, factors = draw.normal(size=(40, 3)), draw.integers(0, 3, size=(40, 2))
    np.save(folder / "codes.npy", codes)
    np.save(folder / "factors.npy", factors)
    np.savez(folder / "two.npz", codes=codes, factors=factors)
    pd.DataFrame(codes).to_csv(folder / "codes.csv", index=False)
    pd.DataFrame(factors, columns=["shape", "scale"]).to_csv(folder / "factors.csv", index=False)
    pd.DataFrame(factors, columns=["shape", "scale"]).to_csv(folder / "factors.tsv", index=False, sep="\t")
    pd.DataFrame(factors, columns=["shape", "scale"]).to_parquet(folder / "factors.parquet")
    save_file({"x": codes.astype(np.float32)}, folder / "x.safetensors")
    np.save(folder / "mixing.npy", draw.normal(size=(4, 2)))
    np.savez(folder / "images.npz", imgs=draw.integers(0, 256, size=(30, 8, 8), dtype=np.uint8))
    for name in ("a.png", "b.png"):
        (folder / "pictures").mkdir(exist_ok=True)
        Image.fromarray(draw.integers(0, 256, size=(9, 9, 3), dtype=np.uint8)).save(folder / "pictures" / name)
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_bytes(textwrap.dedent(text).encode("latin-1"))
    members = aw.grid(model=aw.models.linear(3, 2), objective=aw.objectives.BetaVAE(), steps=2, batch=4, seed=range(2))
    square = aw.data.synth_linear(samples=30)
    aw.evaluate(aw.train(members, square, out=folder / "run"), square, [aw.scores.mig], out=folder / "run")


def npy(descr, shape, contents=b""):
    """The bytes of an ``.npy`` file, whatever it claims."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue() + contents


def pickled(canary):
    """An array of Python objects that makes a file, should anything unpickle it."""
    return npy("|O", (1,), f"cbuiltins\nopen\n(V{canary}\nVw\ntR.".encode())


def archive(contents, claimed=None):
    """A zip archive of one deflated array, ``x.npy``, whose directory claims so many bytes."""
    packed, size = contents if isinstance(contents, tuple) else (_deflated(contents), len(contents))
    claimed = size if claimed is None else claimed
    name, check = b"x.npy", zlib.crc32(contents) if isinstance(contents, bytes) else 0
    big = 0xFFFFFFFF
    extra = struct.pack("<HHQQ", 1, 16, claimed, len(packed))  # zip64: sizes of eight bytes
    shared = struct.pack("<HHHHHIIIHH", 45, 0, 8, 0, 33, check, big, big, len(name), len(extra))
    local = b"PK\x03\x04" + shared + name + extra + packed
    central = b"PK\x01\x02" + struct.pack("<H", 45) + shared + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name + extra
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)
    return local + central + end


def _deflated(contents):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(contents) + packer.flush()


def bomb():
    """An archive of 10 MB whose array of zeros unpacks to 10 GB: a block of zeros, compressed once and repeated."""
    header, block, repeats = npy("|u1", (10_000 << 20,)), 1 << 20, 10_000
    packer = zlib.compressobj(wbits=-15)
    start = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH)
    zeros = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    return archive((start + zeros * repeats + packer.flush(), len(header) + block * repeats))


def signed(form):
    """A JSON object as axiswise would store it, with a digest of its contents, whatever these are."""
    from axiswise.records._files import DIGEST, digest_of

    text = json.dumps(form, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return json.dumps({**form, DIGEST: digest_of(text)}).encode()


def write_bad(folder):
    """Files that nobody wrote, by what is wrong with them."""
    whole, deep = (folder / "codes.npy").read_bytes(), b"[" * 100_000
    canary = str(folder / CANARY)
    bad = {
        "empty.npy": b"",
        "empty.npz": b"",
        "empty.csv": b"",
        "empty.parquet": b"",
        "empty.safetensors": b"",
        "truncated.npy": whole[:100],
        "half.npy": whole[: len(whole) // 2],
        "text.npy": b"no array",
        "huge.npy": npy("<f8", (10**12,)),
        "negative.npy": npy("<f8", (-3, 2)),
        "wide.npy": npy("<f8", (2**62, 2**62)),
        "pickle.npy": pickled(canary),
        "strange.npy": whole.replace(b"<f8", b"<V8"),
        "broken.npy": whole.replace(b"{", b"("),
        "unclosed.npy": whole.replace(b"}", b" "),
        "code.npy": whole.replace(b"'<f8'", b"os.ab"),
        "dates.npy": npy("<M8[ns]", (40, 2), bytes(640)),
        "complex.npy": npy("<c16", (40, 2), bytes(1280)),
        "scalar.npy": npy("<f8", (), bytes(8)),
        "none.npy": npy("<f8", (0, 3)),
        "nan.npy": npy("<f8", (40, 3), b"\xff" * 960),
        "records.npy": npy([("a", "<f8"), ("b", "<i4")], (4,), bytes(48)),
        "letters.npy": npy("<U2", (40, 2), bytes(640)),
        "one.npy": npy("<f8", (1, 1), bytes(8)),
        "seven.npy": npy("<f4", (2,) * 7, bytes(512)),
        "bomb.npz": bomb(),
        "claims.npz": archive(npy("<f8", (10**12,), bytes(80)), claimed=8 * 10**12 + 128),
        "lies.npz": archive(npy("<f8", (10**12,), bytes(80))),
        "pickle.npz": archive(pickled(canary)),
        "text.npz": b"PK\x03\x04no archive",
        "no_array.npz": archive(b"no array"),
        "cut.npz": bomb()[: 1 << 16],
        "binary.csv": bytes(range(256)) * 8,
        "quotes.csv": b'a,b\n"1,2\n',
        "ragged.csv": b"a,b\n1,2\n1,2,3,4\n",
        "huge.csv": b"a,b\n" + b"9" * 5000 + b",1e999\n",
        "twice.csv": b"a,a\n1,2\n3,4\n",
        "nul.csv": b"a,b\n\x00,1\n2,3\n",
        "wide.csv": b",".join(b"1" for _ in range(5000)) + b"\n",
        "binary.tsv": bytes(range(256)),
        "text.parquet": b"PAR1 no parquet PAR1",
        "cut.parquet": (folder / "factors.parquet").read_bytes()[:-20],
        "flipped.parquet": bytes(
            b ^ (17 * (n % 97 == 5)) for n, b in enumerate((folder / "factors.parquet").read_bytes())
        ),
        "length.safetensors": b"\xff" * 8 + b"{}",
        "cut.safetensors": (folder / "x.safetensors").read_bytes()[:-9],
        "half.safetensors": struct.pack("<Q", 65)
        + b'{"x":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}'.ljust(65)
        + bytes(8),
        "none.safetensors": struct.pack("<Q", 2) + b"{}",
        "no_text.txt": b"\xff\xfe",
        "plain": b"plain",
    }
    for name, contents in bad.items():
        (folder / name).write_bytes(contents)
    run, study = json.loads((folder / "run" / "run.json").read_text()), {"format": "axiswise-study-1", "study": "s"}
    run.pop("sha256")
    planned = {"one": {"members": ["0" * 16], "measures": ["mig"]}}
    folders = {
        "deep_run": {"run.json": deep},
        "deep_study": {"study.json": b'{"format":' + deep},
        "list_run": {"run.json": b"[]"},
        "cut_run": {"run.json": b'{"format": "axiswise-run-2"'},
        "number_run": {"run.json": signed({**run, "dataset": 3})},
        "list_members": {"run.json": signed({**run, "members": [[]]})},
        "no_dtype": {"run.json": signed({**run, "dtype": "os.system"})},
        "nan_run": {"run.json": signed({**run, "dataset": {"name": float("nan")}})},
        "bare_run": {"run.json": b'{"format": "axiswise-run-1"}'},
        "runs_study": {"study.json": signed({**study, "runs": 3})},
        "out_study": {"study.json": signed({**study, "runs": ["../run"]})},
        "nul_study": {"study.json": signed({**study, "runs": ["a\0b"]})},
        "none_study": {"study.json": signed({**study, "planned": {"one": None}})},
        "list_study": {"study.json": signed({**study, "planned": [["one"]]})},
        "odd_study": {"study.json": signed({**study, "planned": {"one": {"members": 3, "measures": "mig"}}})},
        "skipped_study": {"study.json": signed({**study, "planned": planned, "skipped": {"one": {"why": []}}})},
        "failed_study": {"study.json": signed({**study, "planned": planned, "failed": {"one": [{"reason": None}]}})},
        "half_study": {"study.json": signed({**study, "planned": planned, "title": "\ud800", "command": None})},
        "huge_study": {"study.json": signed({**study, "planned": planned, "seconds": 10**400})},
        "binary_run": {"run.json": bytes(range(256))},
        "empty_run": {"run.json": b""},
        "empty_folder": {},
        "odd_outcome": {
            "study.json": signed({**study, "planned": planned}),
            "one/outcome.json": signed({"format": "axiswise-outcome-1", "failures": [3]}),
        },
        "odd_rows": {
            "run.json": signed(run),
            "records.jsonl": b'{"member": "a", "measure": "mig", "value": "high", "detail": 3}\n',
        },
        "deep_rows": {"run.json": signed(run), "records.jsonl": deep + b"\n"},
        "two_records": {"run.json": signed(run), "records.jsonl": b"", "records.jsonl.gz": b"no gzip"},
        "bad_gzip": {"run.json": signed(run), "records.jsonl.gz": b"\x1f\x8bno gzip"},
        "odd_plan": {"run.json": signed(run), "plan.json": signed({"format": "axiswise-plan-1", "cohorts": 3})},
        "odd_member": {"run.json": signed(run), "members/0000.safetensors": b"{}"},
        "odd_results": {"verdicts.json": b'{"format": "axiswise-verdicts-1", "claims": 3}'},
        "bad_pictures": {"a.png": b"\x89PNG no picture", "b.jpg": b""},
    }
    for name, files in folders.items():
        (folder / name).mkdir()
        for file, contents in files.items():
            (folder / name / file).parent.mkdir(exist_ok=True)
            (folder / name / file).write_bytes(contents)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "link.npy").symlink_to(folder / "codes.npy")
    return [*bad, *folders, "loop", "link.npy"]
