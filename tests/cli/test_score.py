"""`axiswise score`: files of every kind, what it prints and writes, and which files it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import image as png
from scipy import stats
from typer.testing import CliRunner

from axiswise import scores
from axiswise.cli import app
from axiswise.cli._tables import read_table
from axiswise.cli.score import catalogue
from axiswise.errors import AxiswiseError

SIZES = (3, 6, 10)
NAMES = ["shape", "scale", "turn"]


def run(*arguments: object):
    return CliRunner().invoke(app, ["score", *map(str, arguments)], catch_exceptions=False)


def line(output: str, name: str) -> str:
    return next(found for found in output.splitlines() if found.split()[:1] == [name])


@pytest.fixture(scope="module")
def arrays() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    factors = np.stack([generator.integers(0, size, 400) for size in SIZES], -1)
    codes = np.concatenate([factors / SIZES, np.zeros((400, 1))], 1) + 0.05 * generator.normal(size=(400, 4))
    return codes, factors


@pytest.fixture
def saved(tmp_path, arrays, monkeypatch):
    """The arrays in the working folder, as numpy writes them."""
    monkeypatch.chdir(tmp_path)
    for name, array in zip(("codes", "factors"), arrays, strict=True):
        np.save(f"{name}.npy", array)
    return tmp_path


def test_every_score_that_suits_is_a_line(saved, arrays):
    output = run("codes.npy", "factors.npy", "--json", "scores.json").output
    rows = {row["score"]: row for row in json.loads((saved / "scores.json").read_text())["rows"]}
    assert list(rows) == list(catalogue())
    assert "mig" in rows
    assert output.startswith("400 samples, 4 latents, factors: f0 (discrete, 3 values), f1 (discrete, 6 values), f2")
    for name, row in rows.items():
        assert row["reason"] is None, name
        assert f"{row['value']:.3f}" in line(output, name)
    assert rows["mig"]["value"] == scores.mig(*arrays).score
    assert rows["mig"]["detail"]["gaps"] == [scores.mig(*arrays).gaps.tolist()]
    assert rows["mig"]["settings"]["bins"] == 20
    assert (rows["mig"]["chance"], rows["mig"]["best"]) == (0.0, 1.0)
    assert not (saved / "information.png").exists()


def test_numbers_beside_the_score_are_lines_of_their_own(saved, arrays):
    output = run("codes.npy", "factors.npy", "--scores", "dci").output
    found = scores.dci(*arrays)
    assert f"{found.completeness:.3f}" in line(output, "completeness")
    assert f"{found.informativeness:.3f}" in line(output, "informativeness")
    assert "samples 267 + 133" in line(output, "dci")


def test_seed_and_test_points_reach_the_scores(saved, arrays):
    codes, factors = arrays
    np.save("train.npy", codes[:300])
    np.save("train_factors.npy", factors[:300])
    np.savez("test.npz", codes=codes[300:], factors=factors[300:])
    run("train.npy", "train_factors.npy", "--test-codes", "test.npz:codes", "--test-factors", "test.npz:factors",
        "--scores", "dci", "--json", "a.json")  # fmt: skip
    expected = scores.dci(codes[:300], factors[:300], test=(codes[300:], factors[300:])).score
    assert json.loads((saved / "a.json").read_text())["rows"][0]["value"] == expected
    run("codes.npy", "factors.npy", "--scores", "dci", "--seed", 3, "--json", "b.json")
    assert json.loads((saved / "b.json").read_text())["rows"][0]["value"] == scores.dci(codes, factors, seed=3).score


def test_a_population_is_a_mean_with_its_interval(saved, arrays):
    codes, factors = arrays
    generator = np.random.default_rng(1)
    members = np.stack([codes + noise * generator.normal(size=codes.shape) for noise in (0.0, 0.2, 0.5)])
    np.save("members.npy", members.astype(np.float32))
    result = run("members.npy", "factors.npy", "--scores", "mig", "--json", "scores.json", "--out", "maps")
    (row,) = json.loads((saved / "scores.json").read_text())["rows"]
    expected = scores.mig(members.astype(np.float32), factors).score
    assert row["values"]["score"] == expected.tolist()
    half = stats.t.ppf(0.975, 2) * stats.sem(expected)
    assert f"{expected.mean():.3f} ± {half:.3f}" in line(result.output, "mig")
    assert "mean ± 95 % of 3" in result.output
    assert row["intervals"]["score"]["high"] == pytest.approx(expected.mean() + half, rel=1e-12)
    assert (saved / "maps" / "information.png").exists()


def test_heat_maps_hold_information_and_importance(saved, arrays, monkeypatch):
    from axiswise import report

    drawn = {}
    monkeypatch.setattr(
        report, "heat_map_sheet", lambda matrices, path, **about: drawn.update({path.name: (matrices, about)})
    )
    run("codes.npy", "factors.npy", "--scores", "dci", "--out", "maps")
    found = scores.mig(*arrays)
    (information,), about = drawn["information.png"]
    np.testing.assert_allclose(information, found.information / found.entropies[:, None], rtol=1e-12)
    assert about["factors"] == ("f0", "f1", "f2")
    assert about["latents"] == ("z0", "z1", "z2", "z3")
    assert about["titles"] == [f"MIG {found.score:.3f}"]
    (importance,), _ = drawn["importance.png"]
    np.testing.assert_array_equal(importance, scores.dci(*arrays).importance.T)


def test_scores_that_a_single_factor_makes_1_are_named(saved, arrays):
    noise = np.random.default_rng(0).normal(size=(400, 3))
    np.save("noise.npy", noise)
    np.save("one.npy", arrays[1][:, :1].astype(int))
    np.save("two.npy", np.stack([arrays[1][:, 0], np.zeros(400)], 1).astype(int))
    always = ("dci", "modularity", "factor_vae", "beta_vae")
    for file, name in (("one.npy", "f0"), ("two.npy", "f0")):
        output = run("noise.npy", file, "--json", f"{file}.json").output
        assert f"note: {name}: the only factor, which makes {', '.join(always[:3])} and {always[3]} 1 of any" in output
        rows = {row["score"]: row["value"] for row in json.loads((saved / f"{file}.json").read_text())["rows"]}
        assert {name for name, value in rows.items() if value == 1.0} == set(always)
    assert "the only factor" not in run("codes.npy", "factors.npy", "--scores", "mig").output


def test_pictures_are_written_where_told(saved):
    output = run("codes.npy", "factors.npy", "--scores", "mig", "--out", "maps/new").output
    assert "picture: maps/new/information.png" in output
    picture = png.imread(saved / "maps/new/information.png")
    assert len({tuple(colour) for colour in picture.reshape(-1, picture.shape[-1]).tolist()}) > 10


@pytest.mark.parametrize(
    "how", ["codes.csv", "plain.csv", "index.csv", "headless.csv", "savetxt.csv", "one.npz", "many.npz:z"]
)
def test_every_way_of_saving_codes_is_read(saved, arrays, how):
    codes, factors = arrays
    frame = pd.DataFrame(codes, columns=[f"latent {place}" for place in range(4)])
    frame.to_csv("codes.csv", index=False)
    pd.DataFrame(codes).to_csv("plain.csv", index=False)
    frame.to_csv("index.csv")
    np.savetxt("headless.csv", codes, delimiter=",", fmt="%.17g")
    np.savetxt("savetxt.csv", codes, delimiter=",", fmt="%.17g", header="a,b,c,d")
    np.savez("one.npz", codes)
    np.savez("many.npz", z=codes, other=factors)
    result = run(how, "factors.npy", "--scores", "mig", "--json", "scores.json")
    about = json.loads((saved / "scores.json").read_text())
    assert about["rows"][0]["value"] == pytest.approx(scores.mig(codes, factors).score, abs=1e-12)
    names = {"savetxt.csv": list("abcd"), "plain.csv": list("0123"), "headless.csv": list("0123")}
    named = how in ("codes.csv", "index.csv")
    expected = [f"latent {place}" for place in range(4)] if named else [f"z{place}" for place in range(4)]
    assert about["latent_names"] == names.get(how, expected)
    assert ("numbers the rows and was left out" in result.output) == (how == "index.csv")


def table(arrays) -> pd.DataFrame:
    """Factors as text, levels, truth values and angles."""
    factors = arrays[1]
    frame = pd.DataFrame(factors, columns=NAMES)
    frame["shape"] = np.array(["square", "ellipse", "heart"])[factors[:, 0]]
    frame["big"] = factors[:, 1] > 2
    frame["angle"] = np.linspace(-3.0, 3.0, len(factors))
    return frame


def check_table(output: str) -> None:
    assert "factors: shape (discrete, 3 values), scale (discrete, 6 values), turn (circular), big (discrete" in output
    assert "angle (circular)" in output
    assert "note: shape: text, numbered as 3 levels (0 ellipse, 1 heart, 2 square)" in output


def test_columns_of_a_table_are_factors_of_their_own_kind(saved, arrays):
    frame = table(arrays)
    frame.to_csv("factors.csv", index=False)
    output = run("codes.npy", "factors.csv", "--scores", "mig", "--circular", "turn,angle", "--json", "s.json").output
    check_table(output)
    about = json.loads((saved / "s.json").read_text())
    assert about["factor_names"] == [*NAMES, "big", "angle"]
    assert about["kinds"] == ["discrete", "discrete", "circular", "discrete", "circular"]
    numbered = frame.assign(shape=frame["shape"].map({"ellipse": 0, "heart": 1, "square": 2})).to_numpy(float)
    assert about["rows"][0]["value"] == scores.mig(arrays[0], numbered, kinds=about["kinds"]).score


def test_parquet_is_read(saved, arrays):
    pytest.importorskip("pyarrow")
    table(arrays).to_parquet("factors.parquet")
    pd.DataFrame(arrays[0], columns=list("abcd")).to_parquet("codes.parquet")
    output = run(
        "codes.parquet", "factors.parquet", "--scores", "mig", "--circular", "turn,angle", "--json", "s"
    ).output
    check_table(output)
    assert json.loads((saved / "s").read_text())["latent_names"] == list("abcd")


def test_text_is_numbered_alike_in_training_and_test(saved, arrays):
    codes = arrays[0]
    frame = table(arrays)[["shape", "scale"]]
    order = np.argsort(frame["shape"], kind="stable")  # no ellipse among the last
    codes, frame = codes[order], frame.iloc[order]
    np.save("a.npy", codes[:300])
    np.save("b.npy", codes[200:])
    frame[:300].to_csv("a.csv", index=False)
    frame[200:].to_csv("b.csv", index=False)
    result = run("a.npy", "a.csv", "--test-codes", "b.npy", "--test-factors", "b.csv", "--scores", "dci", "--json", "s")
    numbered = frame.assign(shape=frame["shape"].map({"ellipse": 0, "heart": 1, "square": 2})).to_numpy()
    expected = scores.dci(codes[:300], numbered[:300], test=(codes[200:], numbered[200:])).score
    assert json.loads((saved / "s").read_text())["rows"][0]["value"] == expected
    assert "300 samples, 200 more to test on" in result.output


def test_kinds_by_option(saved, arrays):
    np.save("floats.npy", arrays[1].astype(float))
    cases = [
        ([], ["continuous"] * 3),
        (["--kinds", "discrete"], ["discrete"] * 3),
        (["--kinds", "discrete,continuous,circular"], ["discrete", "continuous", "circular"]),
        (["--discrete", "f0, f2", "--circular", "f1"], ["discrete", "circular", "discrete"]),
        (["--kinds", "discrete", "--continuous", "f2"], ["discrete", "discrete", "continuous"]),
    ]
    for options, kinds in cases:
        result = run("codes.npy", "floats.npy", "--scores", "mig", "--json", "s.json", "--force", *options)
        about = json.loads((saved / "s.json").read_text())
        assert about["kinds"] == kinds
        assert about["rows"][0]["value"] == scores.mig(arrays[0], arrays[1].astype(float), kinds=kinds).score
        doubt = "note: f0, f1, f2: whole numbers stored as floats, read as continuous; --discrete 'f0,f1,f2' if"
        assert (doubt in result.output) == (not options)


ROWS = "red,0\nblue,1\n" * 200


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "european.csv",
            "z0;z1\n" + "5,2454;1,6891\n" * 400,
            r"must have commas between .* Got semicolons; read it with",
        ),
        ("semicolons.csv", "color;size\n" + ROWS.replace(",", ";"), r"Got semicolons; .* sep=';'.*decimal=','"),
        ("plain.csv", "5,25;1,5\n" * 400, r"commas between its columns, by its suffix. Got semicolons"),
        ("tabs.csv", "color\tsize\n" + ROWS.replace(",", "\t"), r"commas between its columns, by its suffix. Got tabs"),
        ("blanks.csv", "1.5e+00 2\n" * 400, r"commas between its columns, by its suffix. Got blanks"),
        ("commas.tsv", "color,size\n" + ROWS, r"tabs between its columns, by its suffix. Got commas"),
        ("trailing.csv", "color,size\n" + ROWS.replace("\n", ",\n"), r"first line, 2. Got rows with more; name every"),
        ("more.csv", "color,size\n" + ROWS.replace("\n", ",3\n"), r"first line, 2. Got rows with more; name every"),
        ("twice.csv", "size,color,size\n" + ROWS.replace("\n", ",3\n"), r"different names. Got \['size'\] more than"),
    ],
)
def test_files_whose_columns_would_be_others_are_refused(saved, name, text, message):
    (saved / name).write_text(text)
    with pytest.raises(AxiswiseError, match=rf"{name}.*{message}"):
        run("codes.npy", name, "--scores", "mig")


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("a b", "dark red"),
        ('"a;b"', '"x;y"'),
        ("a, b", "1, 2"),
        ("note", "a;b"),
        ("a;b,c", "x,1"),
        ("0.5, 1.5", "0.5, 2"),
    ],
)
def test_other_characters_separate_nothing(saved, header, row):
    (saved / "words.csv").write_text(f"{header}\n" + f"{row}\n" * 400)
    assert read_table("words.csv").contents.shape[1] == 1 + ("," in row)


def test_numbers_of_rows_are_left_out_however_they_count(saved, arrays):
    frame = table(arrays)[["shape", "scale"]]
    expected = scores.mig(arrays[0], frame).score
    for index in (np.arange(400) + 1, np.random.default_rng(0).permutation(400), 3 * np.arange(400)):
        frame.set_index(index).to_csv("factors.csv")
        output = run("codes.npy", "factors.csv", "--scores", "mig", "--json", "s.json", "--force").output
        assert "note: factors.csv: the first column, without a name, numbers the rows and was left out" in output
        about = json.loads((saved / "s.json").read_text())
        assert (about["factor_names"], about["rows"][0]["value"]) == (["shape", "scale"], expected)
    pd.DataFrame(arrays[0]).to_csv("codes.csv")
    frame.set_index(np.arange(400)[::-1]).to_csv("factors.csv")
    with pytest.raises(AxiswiseError, match=r"Rows of codes.csv and factors.csv must be in the same order"):
        run("codes.csv", "factors.csv", "--scores", "mig")
    with pytest.raises(AxiswiseError, match=r"Rows of codes.csv and factors.csv must be in the same order"):
        run("codes.csv", "factors.csv", "--agreement")


def test_an_index_in_parquet_is_told(saved, arrays):
    pytest.importorskip("pyarrow")
    frame = table(arrays)[["shape", "scale"]]
    frame.set_index("shape").to_parquet("named.parquet")
    assert (
        "note: named.parquet: the index shape is no column"
        in run("codes.npy", "named.parquet", "--scores", "mig").output
    )
    frame.sample(frac=1, random_state=0).to_parquet("shuffled.parquet")
    output = run("codes.npy", "shuffled.parquet", "--scores", "mig").output
    assert (
        "note: shuffled.parquet: the index is no column and was left out; rows are in the order of the file" in output
    )
    pd.DataFrame(arrays[0], columns=list("abcd")).to_parquet("codes.parquet")
    with pytest.raises(AxiswiseError, match=r"must be in the same order"):
        run("codes.parquet", "shuffled.parquet", "--scores", "mig")


@pytest.mark.parametrize("columns", [1, 2])
def test_labels_whose_first_is_0_lose_no_row(saved, arrays, columns):
    codes, factors = arrays
    factors = factors[:, :columns].copy()
    factors[0] = range(columns)
    expected = scores.mig(codes, factors).score
    np.savetxt("labels.csv", factors, fmt="%d", delimiter=",")
    pd.DataFrame(factors).to_csv("named.csv", index=False)
    pd.DataFrame(codes).to_csv("codes.csv", index=False)
    first = ", ".join(map(str, range(columns)))
    for code in ("codes.npy", "codes.csv"):
        for file, told in (("labels.csv", True), ("named.csv", False)):
            output = run(code, file, "--scores", "mig", "--json", "s.json", "--force").output
            assert json.loads((saved / "s.json").read_text())["rows"][0]["value"] == pytest.approx(expected, abs=1e-12)
            assert (
                f"note: {file}: the first line, {first}, is a row: there are as many rows as samples" in output
            ) == told
    doubted = f"note: named.csv: the first line, {first}, names the columns; write names above if it is a row"
    assert doubted in run("codes.csv", "named.csv", "--scores", "mig").output


def test_empty_columns_text_for_gaps_blanks_and_commas_are_told(saved, arrays):
    colors = np.array(["red, dark", "None", "blue "])[arrays[1][:, 0]]
    frame = pd.DataFrame({"color": colors, "size": arrays[1][:, 1]})
    (saved / "f.csv").write_text(frame.to_csv(index=False).replace("\n", ",\n"))
    told = "f.csv: 'None' counts as a missing value; write it in another way if it is a level"
    with pytest.raises(AxiswiseError, match=rf"missing values .* Note: {told}\."):
        run("codes.npy", "f.csv")
    output = run("codes.npy", "f.csv", "--scores", "mig", "--drop-missing", "--continuous", "color").output
    assert f"note: {told}" in output
    assert "note: f.csv: empty columns without a name, by separators at the ends of rows, were left out" in output
    assert "numbered as 2 levels (0 blue, 1 'red, dark')" in output
    frame["color"] = np.array(["low", "mid", "high"])[arrays[1][:, 0]]
    frame.to_csv("f.csv", index=False)
    output = run("codes.npy", "f.csv", "--scores", "mig,mcc", "--circular", "color").output
    assert output.count("color: text in the order of the alphabet (high, low, mid), read as circular") == 1


def test_one_column_of_labels_is_one_factor(saved, arrays):
    np.save("labels.npy", arrays[1][:, 1])
    assert "factors: f0 (discrete, 6 values)" in run("codes.npy", "labels.npy", "--scores", "mig").output


def test_a_score_that_fails_is_a_line_with_the_reason(saved, monkeypatch):
    @scores.score(invariances=[])
    def grumpy(codes, factors):
        raise AxiswiseError("`codes` must smile. Got a frown.")

    @scores.score(invariances=[], chance=lambda sizes, latents: sum(sizes) + latents / 10, best=None)
    def demanding(codes, decoder):
        raise AssertionError("not to be called")

    for function in (grumpy, demanding):
        monkeypatch.setattr(scores, function.__name__, function, raising=False)
    monkeypatch.setattr(scores, "__all__", ["grumpy", "demanding", "mig"])
    assert "demanding" not in run("codes.npy", "factors.npy").output  # it needs more, so that it is not a default
    result = run("codes.npy", "factors.npy", "--scores", "grumpy,demanding,mig", "--json", "s.json")
    assert result.exit_code == 0
    assert line(result.output, "grumpy").split(maxsplit=4)[-1].strip() == "`codes` must smile. Got a frown."
    assert "needs decoder besides codes and factors: use it from Python" in line(result.output, "demanding")
    assert "19.400" in line(result.output, "demanding")  # 3 + 6 + 10 + 0.4
    assert "0." in line(result.output, "mig")
    rows = json.loads((saved / "s.json").read_text())["rows"]
    assert [(row["value"] is None, row["reason"] is None) for row in rows] == [
        (True, False),
        (True, False),
        (False, True),
    ]


def wrong_files(codes: np.ndarray, factors: np.ndarray, python_object: bytes) -> None:
    np.save("turned.npy", codes.T)
    np.save("turned_factors.npy", factors.T)
    np.save("short.npy", codes[:-7])
    np.save("one_short.npy", codes[:-1])
    np.save("deep.npy", codes[None, None])
    np.save("flat.npy", codes[:, 0])
    np.save("text.npy", np.array([["a"]]))
    Path("objects.npy").write_bytes(python_object)
    np.savez("many.npz", a=codes, b=factors)
    gap = codes.copy()
    gap[7, 2] = np.nan
    np.save("gap.npy", gap)
    frame = pd.DataFrame(factors, columns=NAMES)
    frame.assign(shape="x").to_csv("words.csv", index=False)
    frame.assign(shape=[None if place == 3 else 1 for place in range(len(frame))]).to_csv("gaps.csv", index=False)
    frame.assign(shape=[None if place == 4 else "x" for place in range(len(frame))]).to_csv("gaps2.csv", index=False)
    frame.drop(columns="scale").to_csv("fewer.csv", index=False)
    frame.to_csv("factors.csv", index=False)
    for name, contents in {"empty.csv": "", "names.csv": "a,b\n", "odd.csv": "a,b\n1,2,3,4\n1\n"}.items():
        Path(name).write_text(contents)
    for name in ("bad.npy", "bad.npz", "bad.parquet"):
        Path(name).write_bytes(b"xx")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.npy", "factors.npy"], r"Expected a file at nowhere.npy. There is none."),
        (["codes.txt", "factors.npy"], r"ends in .npy, .npz, .csv, .tsv, .parquet. Got codes.txt."),
        (
            ["turned.npy", "factors.npy"],
            r"Got 4 in turned.npy \(shape \(4, 400\)\) and 400 .* turned.npy seems .* transpose",
        ),
        (["codes.npy", "turned_factors.npy"], r"turned_factors.npy seems to have factors before samples: transpose it"),
        (["short.npy", "factors.npy"], r"Got 393 in short.npy .* give the factors of the same samples"),
        (
            ["one_short.npy", "factors.npy"],
            r"Got 399 .* does one of them have a first line of names, and the other not\?$",
        ),
        (
            ["deep.npy", "factors.npy"],
            r"deep.npy must have axes \(n, z\), or \(members, n, z\). Got shape \(1, 1, 400, 4\)",
        ),
        (["flat.npy", "factors.npy"], r"`codes` must have axes .* Got shape \(400,\); use .* Read flat.npy and fac"),
        (
            ["codes.npy", "deep.npy"],
            r"`deep.npy` must have axes \(n, k\): samples, then factors.* Got shape \(1, 1, 400, 4\)",
        ),
        (["text.npy", "factors.npy"], r"`text.npy` must contain real numbers. Got the type <U1."),
        (["objects.npy", "factors.npy"], r"objects.npy holds Python objects, which would"),
        (["bad.npy", "factors.npy"], r"bad.npy is not a whole array of numpy's"),
        (["bad.npz", "factors.npy"], r"bad.npz is truncated or not an .npz file"),
        (["many.npz", "factors.npy"], r"the one meant must be named: many.npz:KEY. Got the keys a, b."),
        (["many.npz:c", "factors.npy"], r"many.npz has the keys a, b. Got 'c'."),
        (["gap.npy", "factors.npy"], r"`codes` must be finite. .* 1 of 400 rows, in latent 2; .* Read gap.npy and fac"),
        (["codes.npy", "gaps.csv"], r"`factors` must be finite. .* 1 of 400 rows, in shape; drop .*--drop-missing"),
        (["codes.npy", "gaps2.csv"], r"1 of 400 rows, in shape; drop .*--drop-missing"),
        (["words.csv", "factors.npy"], r"shape of `words.csv` must contain real numbers. Got 'x'."),
        (["empty.csv", "factors.npy"], r"empty.csv cannot be read as CSV \(No columns to parse from file\)."),
        (["names.csv", "factors.npy"], r"names.csv must have at least one row and one column. Got 0 rows."),
        (
            ["odd.csv", "factors.npy"],
            r"odd.csv must have as many fields in each row as names in .*, 2. Got rows with more; name",
        ),
        (["codes.npy", "codes.npy", "--kinds", "discrete"], r"whole numbers from 0. Got .*\(factors f0, f1, f2, f3\)"),
        (
            ["codes.npy", "factors.npy", "--kinds", "discret"],
            r"--kinds must be one of .* the 3 factors .* Got discret.",
        ),
        (["codes.npy", "factors.npy", "--kinds", "discrete,discrete"], r"Got discrete,discrete."),
        (["codes.npy", "factors.npy", "--circular", "f9"], r"--circular must name factors \(f0, f1, f2\). Got 'f9'."),
        (["codes.npy", "factors.npy", "--test-codes", "codes.npy"], r"go together. Got one without the other."),
        (
            ["codes.npy", "factors.csv", "--test-codes", "codes.npy", "--test-factors", "fewer.csv"],
            r"fewer.csv must have the factors of factors.csv \(shape, scale, turn\). Got shape, turn.",
        ),
        (
            ["codes.npy", "factors.npy", "--scores", "migg"],
            r"--scores must name some of .*mig.*. Got migg. Did you mean 'mig'\?",
        ),
        (["codes.npy", "factors.npy", "--scores", ","], r"--scores must name some of .*. Got nothing."),
    ],
)
def test_refuses(saved, arrays, arguments, message, python_object):
    wrong_files(*arrays, python_object)
    with pytest.raises(AxiswiseError, match=message):
        run(*arguments)


def test_few_samples_of_many_latents_are_doubted(saved, arrays):
    np.save("both.npy", arrays[0][:4].T.copy())
    np.save("few.npy", np.arange(4)[:, None])
    np.save("wide.npy", np.random.default_rng(0).normal(size=(4, 30)))
    assert (
        "note: 4 samples of 30 latents: are the arrays transposed?"
        in run("wide.npy", "few.npy", "--scores", "mig").output
    )


@pytest.mark.parametrize(
    ("missing", "name", "message"),
    [
        ("pandas", "codes.csv", r"codes.csv needs pandas to be read. Install it: pip install 'axiswise\[report\]'."),
        (
            "pyarrow",
            "codes.parquet",
            r"codes.parquet needs pyarrow to be read. Install it: pip install 'axiswise\[parquet\]'.",
        ),
    ],
)
def test_what_is_not_installed_is_named(saved, arrays, monkeypatch, missing, name, message):
    pd.DataFrame(arrays[0]).to_csv("codes.csv", index=False)
    (saved / "codes.parquet").write_bytes(b"PAR1")
    for module in (missing, "fastparquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(AxiswiseError, match=message):
        run(name, "factors.npy", "--scores", "mig")


def test_without_matplotlib_a_picture_is_refused_in_one_line(saved):
    program = "import sys; sys.modules['matplotlib'] = None; from axiswise.cli import main; main()"
    command = [sys.executable, "-c", program, "score", "codes.npy", "factors.npy", "--out", "maps"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "axiswise: --out needs matplotlib. Install it: pip install 'axiswise[report]'.\n"


def test_nothing_in_a_file_is_executed(saved, python_object):
    (saved / "bomb.npy").write_bytes(python_object)
    with pytest.raises(AxiswiseError, match=r"bomb.npy holds Python objects, which would .* executed"):
        run("bomb.npy", "factors.npy")
    assert not (saved / "exploded").exists()


# `axiswise bench scores`


@pytest.fixture
def small_bench(monkeypatch, tmp_path):
    from axiswise_benchmarks import scores as benchmark

    monkeypatch.setattr(benchmark, "TRAIN", 160)
    monkeypatch.setattr(benchmark, "TEST", 80)
    monkeypatch.chdir(tmp_path)
    return benchmark


def bench(*arguments: str):
    result = CliRunner().invoke(app, ["bench", "scores", "--json", "bench.json", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output, json.loads(Path("bench.json").read_text())


def test_bench_compares_with_the_plain_algorithms(small_bench, monkeypatch):
    known = small_bench.reference()
    assert {"mig", "sap", "modularity", "irs", "dci", "explicitness", "factor_vae", "beta_vae"} <= set(known)
    monkeypatch.setattr(small_bench, "reference", lambda: {name: known[name] for name in ("mig", "dci", "irs")})
    monkeypatch.setattr(small_bench, "warm_up", lambda known: None)
    output, about = bench("--members", "5")
    assert [(row["score"], row["code"]) for row in about["rows"]] == [
        (score, code) for score in ("mig", "dci", "irs") for code in ("aligned", "rotated", "mixed")
    ]
    for row in about["rows"]:
        assert row["ratio"] == pytest.approx(row["reference_seconds"] / row["seconds"])
        assert row["difference"] == abs(row["value"] - row["reference_value"])
        assert row["difference"] < 1e-12 or row["score"] == "dci"  # trees on histograms are not those on all values
        assert row["about"] == ("factors of 3 and 6 levels only" if row["score"] == "dci" else "")
    mig, irs = (row for row in about["population"] if row["score"] in ("mig", "irs"))
    assert (mig["members"], mig["sampled"]) == (5, 3)
    assert mig["difference"] < 1e-12 > irs["difference"]
    assert mig["ratio"] == pytest.approx(mig["reference_seconds"] / mig["seconds"])
    assert output.count("reference measured on 3 members") == 2
    assert about["peak_gib"] > 0.01
    assert f"peak memory of all this: {about['peak_gib']:.2f} GiB" in output


def test_bench_in_full_leaves_nothing_out(small_bench, monkeypatch):
    shapes = []

    def plain(codes, factors, test_codes, test_factors):
        shapes.append((codes.shape, factors.shape, test_codes.shape, test_factors.shape))
        return 0.25, 0.5

    monkeypatch.setattr(small_bench, "reference", lambda: {"dci": plain, "mig": plain})
    monkeypatch.setattr(small_bench, "warm_up", lambda known: None)
    monkeypatch.setattr(small_bench, "REPEATS", 1)
    monkeypatch.setattr(small_bench, "POPULATION", ("mig",))
    every = small_bench.examples
    monkeypatch.setattr(small_bench, "examples", lambda *sizes: every(*sizes)[:1])
    output, about = bench("--members", "4", "--exact")
    assert shapes == [((160, 10), (160, 5), (80, 10), (80, 5))] * (1 + 1 + 4)
    assert "only" not in output
    assert "measured on" not in output
    assert {row["reference_value"] for row in about["rows"]} == {0.5}  # the test part counts
    assert about["population"][0]["sampled"] == 4


def test_bench_without_the_source_tree_times_our_side(small_bench, monkeypatch, tmp_path):
    assert small_bench.reference(tmp_path / "absent.py") == {}
    monkeypatch.setattr(small_bench, "reference", dict)
    monkeypatch.setattr(small_bench, "_battery", lambda: {"mig": scores.mig})
    output, about = bench("--members", "2")
    assert output.startswith(
        "no reference: tests/scores/reference.py is part of the source tree; only our side is timed"
    )
    assert [row["ratio"] for row in (*about["rows"], *about["population"])] == [None] * 4
    assert "–" in line(output, "mig")


def test_outputs_never_replace_inputs_and_other_files_only_if_asked(saved):
    before, scored = (saved / "codes.npy").read_bytes(), ("codes.npy", "factors.npy", "--scores", "mig", "--json")
    for options in ((), ("--force",)):
        with pytest.raises(AxiswiseError, match=r"codes.npy is read by this command, so it cannot be written to"):
            run(*scored, "codes.npy", *options)
    assert (saved / "codes.npy").read_bytes() == before
    (saved / "thesis.json").write_text("years of work")
    with pytest.raises(AxiswiseError, match=r"thesis.json is there already. Choose another name, or add --force to"):
        run(*scored, "thesis.json")
    assert (saved / "thesis.json").read_text() == "years of work"
    run(*scored, "thesis.json", "--force")
    assert json.loads((saved / "thesis.json").read_text())["rows"]
    (saved / "link.json").symlink_to(saved / "thesis.json")
    for name, kind in (("link.json", "a link"), ("/dev/null", "a device"), (".", "a folder")):
        with pytest.raises(AxiswiseError, match=rf"must be a regular file, or nothing yet, .* Got {kind}"):
            run(*scored, name, "--force")
