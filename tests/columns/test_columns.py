"""Arrays as people have them: every kind, with each defect, through scores, datasets and the command line."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from axiswise import data, evaluate, explain, grid, models, objectives, optimizers, scores, train
from axiswise._columns import as_array, as_columns, as_columns_alike
from axiswise.cli import app
from axiswise.errors import AxiswiseError

SAMPLES = 300
SHAPES = ["heart", "ellipse", "square"]
GAPS = [3, 50]  # rows whose shape, or whose scale, is missing


def clean() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    shape = np.array(SHAPES, object)[generator.integers(0, 3, SAMPLES)]
    return pd.DataFrame({"shape": shape, "scale": generator.integers(0, 6, SAMPLES)})


def numbers(frame: pd.DataFrame) -> np.ndarray:
    """By pandas: levels in the order of the alphabet, NaN for gaps."""
    shape = pd.Categorical(frame["shape"], sorted(SHAPES)).codes.astype(float)
    return np.stack([np.where(shape < 0, np.nan, shape), frame["scale"].to_numpy(float, na_value=np.nan)], -1)


def with_gaps() -> pd.DataFrame:
    frame = clean().astype({"scale": "Int64"})
    frame.loc[GAPS[0], "shape"] = None
    frame.loc[GAPS[1], "scale"] = pd.NA
    return frame


def constant() -> pd.DataFrame:
    return clean().assign(shape="heart")


CODES = np.random.default_rng(1).normal(size=(SAMPLES, 3)) * 0.1 + np.pad(numbers(clean()), [(0, 0), (0, 1)])


def cells(frame: pd.DataFrame) -> list[list[Any]]:
    return [[None if pd.isna(cell) else cell for cell in row] for row in frame.astype(object).to_numpy().tolist()]


def columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    return {name: [row[place] for row in cells(frame)] for place, name in enumerate(frame)}


def records(frame: pd.DataFrame) -> np.ndarray:
    return np.array([tuple(row) for row in cells(frame)], dtype=[("shape", object), ("scale", object)])


def integers(frame: pd.DataFrame) -> np.ndarray:
    values = numbers(frame)
    return values if np.isnan(values).any() else values.astype(np.int64)


def categories(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({"shape": pd.CategoricalDtype(sorted(SHAPES)), "scale": pd.CategoricalDtype(range(6))})


def nullable(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({"shape": "string", "scale": "Int64"})


def in_polars(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("polars").DataFrame(columns(frame))


def polars_categories(frame: pd.DataFrame) -> Any:
    polars = pytest.importorskip("polars")
    shape = polars.Series("shape", columns(frame)["shape"], dtype=polars.Categorical)
    return in_polars(frame).with_columns(shape, polars.col("scale").cast(polars.Float64))


def polars_enum(frame: pd.DataFrame) -> Any:
    polars = pytest.importorskip("polars")
    return in_polars(frame).with_columns(polars.col("shape").cast(polars.Enum(sorted(SHAPES))))


KINDS: dict[str, tuple[Callable[[pd.DataFrame], Any], bool, bool]] = {  # made of a table; has names; names levels
    "array": (integers, False, False),
    "floats": (numbers, False, False),
    "tensor": (lambda frame: torch.from_numpy(integers(frame)), False, False),
    "tensors": (lambda frame: list(torch.from_numpy(integers(frame))), False, False),
    "lists": (cells, False, True),
    "tuples": (lambda frame: tuple(map(tuple, cells(frame))), False, True),
    "objects": (lambda frame: np.array(cells(frame), dtype=object), False, True),
    "records": (records, True, True),
    "columns": (columns, True, True),
    "pandas": (lambda frame: frame, True, True),
    "pandas objects": (lambda frame: pd.DataFrame(columns(frame)), True, True),
    "pandas categories": (categories, True, True),
    "pandas nullable": (nullable, True, True),
    "polars": (in_polars, True, True),
    "polars categories": (polars_categories, True, True),
    "polars enum": (polars_enum, True, True),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_every_kind_is_read_alike(kind):
    make, named, levelled = KINDS[kind]
    found, expected = scores.mig(CODES, make(clean()), kinds="discrete"), scores.mig(CODES, integers(clean()))
    assert found.score == expected.score
    assert found.inputs.factor_names == (("shape", "scale") if named else ("factor 0", "factor 1"))
    assert found.inputs.levels[0] == (tuple(sorted(SHAPES)) if levelled else None)
    assert (found.inputs.dropped, found.inputs.constant_factors, found.inputs.varying_latents) == (0, (), 3)
    if kind not in ("floats", "polars categories"):  # whose scale is a float
        assert as_columns(make(clean())).kinds == ("discrete", "discrete")


@every_kind
def test_gaps_are_refused_or_dropped(kind):
    make, named, _ = KINDS[kind]
    gaps = make(with_gaps())
    names = "shape, scale" if named else "factor 0, factor 1"
    told = rf"missing values \(NaN\) in 2 of 300 rows, in {names}; drop .* missing=\"drop\" \(--drop-missing"
    with pytest.raises(AxiswiseError, match=told):
        scores.mig(CODES, gaps, kinds="discrete")
    found = scores.mig(CODES, gaps, kinds="discrete", missing="drop")
    kept = with_gaps().dropna().index  # as pandas counts
    assert found.score == scores.mig(CODES[kept], integers(clean())[kept]).score
    assert (found.inputs.dropped, found.inputs.samples) == (2, SAMPLES - 2)
    if named and kind not in ("records", "polars categories"):  # whose scale is a float
        # pandas and polars store integers with gaps as floats: they are levels all the same.
        assert as_columns(gaps).kinds == ("discrete", "discrete")


@every_kind
def test_a_constant_factor_is_named(kind):
    make, named, _ = KINDS[kind]
    name = "shape" if named else "factor 0"
    with pytest.warns(scores.UndefinedScore, match=rf"^{name}: constant, so that there is no score of it"):
        found = scores.mig(CODES, make(constant()), kinds="discrete")
    assert found.inputs.constant_factors == (name,)
    assert np.isnan(found.gaps).tolist() == [True, False]
    assert found.score == scores.mig(CODES, integers(clean())[:, 1:]).score


@every_kind
def test_datasets_take_every_kind(kind):
    make, named, levelled = KINDS[kind]
    dataset = data.arrays(CODES, make(clean()), kinds=["discrete", "discrete"])
    assert dataset.factors(torch.arange(SAMPLES)).tolist() == integers(clean()).tolist()
    assert dataset.space.names == (("shape", "scale") if named else ("factor 0", "factor 1"))
    assert dataset.space.sizes == (3, 6)
    assert dataset.space.factors[0].levels == (tuple(sorted(SHAPES)) if levelled else ())
    assert "dropped" not in dataset.arguments
    gaps = make(with_gaps())
    with pytest.raises(AxiswiseError, match=r"`factors` must be finite. Got NaN .* in 2 of 300 rows, in "):
        data.arrays(CODES, gaps, kinds=["discrete", "discrete"])
    dropped = data.arrays(CODES, gaps, kinds=["discrete", "discrete"], missing="drop")
    assert (len(dropped), dropped.arguments["dropped"]) == (SAMPLES - 2, 2)
    kept = with_gaps().dropna().index
    assert dropped.x(torch.arange(len(dropped))).tolist() == CODES[kept].astype(np.float32).tolist()


@pytest.mark.parametrize("library", ["numpy", "list", "torch", "pandas", "polars"])
def test_one_axis_is_one_factor(library):
    scale = clean()["scale"].rename("size")
    one = {
        "numpy": lambda: scale.to_numpy(),
        "list": lambda: scale.tolist(),
        "torch": lambda: torch.tensor(scale.tolist()),
        "pandas": lambda: scale,
        "polars": lambda: pytest.importorskip("polars").Series("size", scale.tolist()),
    }[library]()
    found = scores.dci(CODES, one)
    assert found.score == scores.dci(CODES, scale.to_numpy()[:, None]).score
    assert found.inputs.factor_names == (("size",) if library in ("pandas", "polars") else ("factor 0",))
    assert data.arrays(CODES, one).space.sizes == (6,)


def test_text_truth_values_and_real_numbers_have_kinds_of_their_own():
    rows = [["a", True, 1, 0.5, "1"], ["b", False, 0, 2.0, 2], [b"a", None, 7, 1, 2.5]]
    read = as_columns(rows)
    assert read.kinds == ("discrete", "discrete", "discrete", "continuous", "discrete")
    assert read.levels == (("a", "b"), None, None, None, ("1", "2", "2.5"))
    np.testing.assert_array_equal(read.values[:, 1], [1, 0, np.nan])
    assert as_columns(np.array([True, False])).kinds == ("discrete",)
    assert as_columns(np.array(["10", "9"])).levels == (("10", "9"),)  # text is text
    assert as_columns(pd.Series([1.0, 2.0, None])).kinds == ("discrete",)
    assert as_columns(pd.Series([1.0, 2.0])).kinds == ("continuous",)
    assert as_columns(np.array([1.0, 2.0, np.nan])).kinds == ("continuous",)


def test_categories_keep_their_order():
    size = pd.Series(["high", "low", "mid"]).astype(pd.CategoricalDtype(["low", "mid", "high", "none"], ordered=True))
    read = as_columns(pd.DataFrame({"size": size}))
    assert read.values[:, 0].tolist() == [2, 0, 1]
    assert read.levels == (("low", "mid", "high", "none"),)
    assert data.arrays(np.eye(3), size).space.sizes == (4,)
    assert as_columns(pd.Series([30, 10, None], dtype="category")).levels == (("10", "30"),)
    assert as_columns(pd.Series([0.1 + 0.2, 1.0, None], dtype="category")).levels == (("0.3", "1"),)
    assert as_columns(["none", 0.1 + 0.2, 1.0, 1, 2.5]).levels == (("0.3", "1", "2.5", "none"),)
    polars = pytest.importorskip("polars")
    read = as_columns(polars.Series(["high", "low", None], dtype=polars.Enum(["low", "high"])))
    np.testing.assert_array_equal(read.values[:, 0], [1, 0, np.nan])


def test_levels_are_numbered_alike_in_training_and_test():
    train, test = clean().iloc[:200], clean().iloc[200:]
    train, test = train[train["shape"] != "ellipse"], test
    first, second = as_columns_alike(train, test)
    assert first.levels == second.levels
    assert first.values.tolist() == numbers(train).tolist()
    found = scores.dci(CODES[train.index], train, test=(CODES[test.index], test))
    expected = scores.dci(
        CODES[train.index], integers(train), test=(CODES[test.index], integers(test)), kinds="discrete"
    )
    assert found.score == expected.score
    with pytest.raises(AxiswiseError, match=r"must have the same columns everywhere. Got shape, scale and scale."):
        scores.dci(CODES[:200], clean()[:200], test=(CODES[200:], clean()[["scale"]][200:]))


@pytest.mark.parametrize("make", [list, torch.from_numpy, pd.DataFrame, np.ndarray.tolist])
def test_codes_and_observations_of_every_kind(make):
    factors = clean()
    assert scores.sap(make(CODES), factors).score == scores.sap(CODES, factors).score
    assert data.arrays(make(CODES)).arguments == data.arrays(CODES).arguments
    gaps = CODES.copy()
    gaps[7, 1] = np.nan
    with pytest.raises(AxiswiseError, match=r"`codes` must be finite. .* in 1 of 300 rows, in latent 1"):
        scores.hoyer(make(gaps))
    assert scores.hoyer(make(gaps), missing="drop").inputs.dropped == 1
    assert data.arrays(make(gaps), factors, missing="drop").arguments["dropped"] == 1


def test_a_gap_of_one_member_drops_the_row_in_all():
    stack = np.stack([CODES, CODES[:, ::-1], 2 * CODES])
    stack[1, 7, 0] = np.nan
    with pytest.raises(AxiswiseError, match=r"Got values of members \[1\] that are NaN"):
        scores.mig(stack, clean())
    found = scores.mig(stack, clean(), missing="drop")
    assert found.score.tolist() == [scores.mig(np.delete(CODES, 7, 0), clean().drop(index=7)).score] * 3
    assert found.inputs.dropped == 1
    stack[1] = np.nan
    with pytest.raises(AxiswiseError, match=r"Got 300 rows, and values missing in each; leave out the"):
        scores.mig(stack, clean(), missing="drop")
    stack[1] = np.inf
    with pytest.raises(AxiswiseError, match=r"NaN or infinite in 300 of 300 rows"):  # which is not a missing value
        scores.mig(stack, clean(), missing="drop")


def test_collapsed_members_are_named():
    stack = np.stack([CODES, np.full_like(CODES, 0.1)])
    with pytest.warns(scores.UndefinedScore, match=r"^`codes` of members \[1\] do not vary in any latent"):
        found = scores.mig(stack, clean())
    assert found.inputs.varying_latents.tolist() == [3, 0]


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([[1, 2], [3]], r"Rows of `factors` must be equally long. Got rows of 1 and 2 values."),
        ([np.zeros(2), np.zeros(3)], r"Rows of `factors` must be equally long."),
        ({"a": [1, 2], "b": [1]}, r"Columns of `factors` must be equally long lists of values"),
        ({}, r"`factors` must have at least one column and one row"),
        ([], r"none of them empty; one axis is one factor. Got shape \(0,\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"must have different names. Got \['a'\] more than once"),
        (
            pd.DataFrame({"day": pd.to_datetime(["2026-01-01"])}),
            r"day of `factors` must contain .* Got the type datetime64",
        ),
        ([1j], r"factor 0 of `factors` must contain numbers, truth values or text. Got 1j."),
    ],
)
def test_refuses(factors, message):
    with pytest.raises(AxiswiseError, match=message):
        as_columns(factors)


def test_numbers_are_numbers():
    assert as_array([[1, 2]], "x").dtype == np.int64
    assert as_array(pd.DataFrame({"a": [1], "b": [True]}), "x").tolist() == [[1, 1]]
    assert as_array([np.zeros((2, 2), np.uint8)] * 3, "x").dtype == np.uint8
    assert as_array(torch.ones(2, dtype=torch.bfloat16), "x").dtype == np.float32
    with pytest.raises(AxiswiseError, match=r"b of `x` must contain real numbers. Got 'u'"):
        as_array(pd.DataFrame({"a": [1], "b": pd.Series(["u"], dtype=object)}), "x")


def test_explain_takes_tables():
    x, slope = torch.from_numpy(CODES).float(), torch.eye(3)
    found = explain(lambda x: (x @ slope, torch.full_like(x, -3.0)), lambda z: z @ slope, x, factors=clean(), points=60)
    assert "shape" in found["scores"].sentence + str(found.arrays["factors"].tolist())


MASK = np.random.default_rng(2).random((SAMPLES, 2)) < 0.1


@pytest.mark.parametrize("hidden", [-7, 99, 1e300, np.inf])
def test_masked_values_are_missing(hidden):
    """Whatever number the mask hides."""
    masked = np.ma.array(np.where(MASK, hidden, integers(clean())), mask=MASK)
    masked = masked if np.isinf(hidden) or hidden > 1e9 else masked.astype(np.int64)
    kept = ~MASK.any(1)
    expected = scores.mig(CODES[kept], integers(clean())[kept]).score
    columns = {"shape": masked[:, 0], "scale": masked[:, 1]}
    for given in (masked, columns, list(masked), [list(row) for row in masked], np.ma.array(masked, object)):
        with pytest.raises(AxiswiseError, match=rf"missing values \(NaN\) in {SAMPLES - kept.sum()} of 300 rows, in "):
            scores.mig(CODES, given, kinds="discrete")
        found = scores.mig(CODES, given, kinds="discrete", missing="drop")
        assert (found.score, found.inputs.dropped) == (expected, SAMPLES - kept.sum())
    dataset = data.arrays(CODES, masked, kinds=["discrete"] * 2, missing="drop")
    assert dataset.arguments["dropped"] == SAMPLES - kept.sum()
    with pytest.raises(AxiswiseError, match="missing values"):
        explain(lambda x: (x, x), lambda z: z, torch.from_numpy(CODES).float(), factors=masked)


def test_masked_text_codes_and_observations():
    assert as_columns(np.ma.array(["a", "z", "b"], mask=[0, 1, 0])).levels == (("a", "b"),)
    assert as_columns(np.ma.array([1, 2])).kinds == as_columns(np.ma.array([1, 2], mask=[0, 1])).kinds == ("discrete",)
    assert as_columns(np.ma.array([1.0, 2.0], mask=[0, 1])).kinds == ("continuous",)
    assert as_array(np.ma.array([[1], [2]], np.uint8), "x").dtype == np.uint8
    codes = np.ma.array(np.where(MASK, 1e6, CODES[:, :2]), mask=MASK)
    kept = ~MASK.any(1)
    assert scores.mig(codes, clean(), missing="drop").score == scores.mig(CODES[kept, :2], clean()[kept]).score
    found = scores.agreement(np.ma.stack([codes, codes]), missing="drop")
    assert (found.score, found.inputs.dropped) == (pytest.approx(1.0), MASK.any(1).sum())
    assert data.arrays(codes, missing="drop").arguments["dropped"] == MASK.any(1).sum()


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_matrix_is_an_array():
    assert as_columns(np.matrix([[1, 2], [0, 1]])).values.tolist() == [[1, 2], [0, 1]]
    assert as_array([np.matrix([[1, 2]])], "x").shape == (1, 1, 2)
    assert len(data.arrays(np.matrix(np.eye(3)), np.matrix([[0], [1], [0]]))) == 3


def test_cells_without_axes_are_numbers():
    one, half = torch.tensor(1), torch.tensor(0.5)
    assert as_columns([[one, 2], [3, None]]).kinds == ("discrete", "discrete")
    np.testing.assert_array_equal(as_columns([[one, half], [3, None]]).values, [[1, 0.5], [3, np.nan]])
    cells = pd.Series([one, np.array(2), None], dtype=object)
    np.testing.assert_array_equal(as_columns(pd.DataFrame({"a": cells})).values[:, 0], [1, 2, np.nan])
    images = torch.full((2, 3), 255, dtype=torch.uint8)
    assert as_array([[images, images]], "x").dtype == as_array([images, images], "x").dtype == np.uint8
    assert data.arrays([[images], [images]]).x(torch.tensor([0])).max() == 1.0


@pytest.mark.parametrize("cell", [np.zeros(2), torch.zeros(2), [1, 2], {"x": 1}, pd.Series([1, 2]), {1}])
def test_other_cells_are_refused_by_the_name_of_their_type(cell):
    cells = np.empty(2, dtype=object)
    cells[:] = [cell, cell]
    for column in (cells, pd.DataFrame({"a": pd.Series(list(cells), dtype=object)})):
        with pytest.raises(AxiswiseError, match=rf"truth values or text. Got the type {type(cell).__name__}\."):
            as_columns(column)


def test_cells_of_polars_that_are_no_values_are_refused():
    polars = pytest.importorskip("polars")
    with pytest.raises(AxiswiseError, match=r"a of `factors` must contain .* Got the type ndarray"):
        as_columns(polars.DataFrame({"a": [[1, 2], [3, 4]]}))
    pairs = polars.Series([[1, 2], [3, 4]], dtype=polars.Array(polars.Int64, 2))
    for column in (pairs, polars.Series([{"x": 1, "y": 2}, {"x": 3, "y": 4}])):
        with pytest.raises(AxiswiseError, match=r"must have one value in each row. Got shape \(2, 2\) of a; make each"):
            as_columns(polars.DataFrame({"a": column}))
    with pytest.raises(AxiswiseError, match=r"must have a type that numpy has. Got a Series of Int128 \(.*\); convert"):
        as_columns(polars.DataFrame({"a": polars.Series([1, 2], dtype=polars.Int128)}))


@pytest.mark.filterwarnings("ignore")  # PyTorch's, of what is new or old
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch.eye(3).to_sparse(), r"Got a Tensor of torch.float32 \(can't convert Sparse .*\); convert it"),
        (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), r"Got a Tensor of torch.qint8"),
        (lambda: torch.ones(3, dtype=torch.complex32), r"Got a Tensor of torch.complex32"),
        (lambda: torch.ones(3, dtype=torch.complex64).conj(), r"must contain numbers, .* Got the type complex64"),
        (lambda: torch.nested.nested_tensor([torch.ones(2)] * 3), r"Got a Tensor of torch.float32"),
    ],
)
def test_types_that_numpy_lacks_are_named(make, message):
    with pytest.raises(AxiswiseError, match=message):
        as_columns(make())


def test_views_small_floats_and_arrays_of_pyarrow_are_read():
    assert as_columns(torch.tensor([1 + 2j, 3 - 4j]).conj().imag).values[:, 0].tolist() == [-2, 4]
    assert as_columns(torch.tensor([1.0, 0.5]).to(torch.float8_e4m3fn)).values[:, 0].tolist() == [1, 0.5]
    pyarrow = pytest.importorskip("pyarrow")
    assert as_columns(pyarrow.array([1, 2, None])).kinds == ("discrete",)
    assert as_columns(pyarrow.array(["b", None, "a"])).levels == (("a", "b"),)
    assert as_columns(pyarrow.chunked_array([[1.5], [2.0]])).kinds == ("continuous",)


def test_bytes_that_are_not_utf_8_stay_apart():
    assert as_columns([b"\xff", b"\xfe", b"a", "a"]).levels == (("\\xfe", "\\xff", "a"),)
    polars = pytest.importorskip("polars")
    read = as_columns(polars.Series([b"\xff", b"\xfe", None]))
    assert read.levels == (("\\xfe", "\\xff"),)
    assert as_columns(pd.Series([b"\xff", b"\xfe"], dtype="category")).levels == (("\\xfe", "\\xff"),)


def test_a_gap_does_not_change_the_kind_of_typed_columns():
    polars = pytest.importorskip("polars")
    for whole in ([1.0, 2.0, 3.0], [1.0, 2.0, None]):
        assert as_columns(pd.DataFrame({"a": pd.array(whole, dtype="Float64")})).kinds == ("continuous",)
        assert as_columns(polars.DataFrame({"a": polars.Series(whole, dtype=polars.Float64)})).kinds == ("continuous",)
        assert as_columns(polars.DataFrame({"a": polars.Series(whole).cast(polars.Int32)})).kinds == ("discrete",)
        assert as_columns(pd.DataFrame({"a": pd.array(whole, dtype="Int64")})).kinds == ("discrete",)
    assert as_columns(pd.DataFrame({"a": [1.0, np.inf, None]})).kinds == ("continuous",)
    for column in (pd.Series([2.0**60, None]), polars.Series([2**60 + 1, None])):
        with pytest.raises(AxiswiseError, match=r"integers up to 2\^53"):
            as_columns(column)


def test_categories_are_read_by_their_places():
    days = pd.to_datetime(["2026-01-02", "2026-01-01", None])
    for unit in ("s", "ns"):
        read = as_columns(pd.Series(pd.Categorical(days.astype(f"datetime64[{unit}]"))))
        np.testing.assert_array_equal(read.values[:, 0], [1, 0, np.nan])
        assert read.levels == (("2026-01-01 00:00:00", "2026-01-02 00:00:00"),)
    large = pd.Categorical([2**60 + 1, 2**60, None])
    for column in (large, pd.Series(large), pd.CategoricalIndex(large)):
        np.testing.assert_array_equal(as_columns(column).values[:, 0], [1, 0, np.nan])
    sizes = pd.DataFrame({"size": pd.Categorical([30, 10])})
    assert as_array(sizes, "x").tolist() == [[30], [10]]  # as numbers they are what they say
    other = pd.DataFrame({"size": pd.Categorical([20, 10])})
    assert [read.values[:, 0].tolist() for read in as_columns_alike(sizes, other)] == [[2, 0], [1, 0]]
    with pytest.raises(AxiswiseError, match=r"Got the type Timestamp"):  # no text that two tables could share
        as_columns_alike(pd.Series(pd.Categorical(days[:1])), pd.Series(pd.Categorical(days[1:2])))


def test_numbers_among_text_have_one_name():
    mixed = ["x", 1e12 + 1, 1e12 + 2, Decimal("0.10"), 0.1, Decimal("1"), 1, 1.0, 0.1 + 0.2, True]
    assert as_columns(mixed).levels == (("0.1", "0.3", "1", "1000000000001", "1000000000002", "True", "x"),)
    assert np.isnan(as_columns([Decimal("sNaN"), 2]).values[0, 0])
    assert as_columns(["a", Decimal("sNaN"), pd.NA, pd.NaT, float("nan")]).levels == (("a",),)


def test_what_is_constant_but_for_rounding_is_constant():
    drawn = np.random.default_rng(0).integers(0, 2, SAMPLES)
    rounded = np.array([0.1 + 0.2, 0.3])[drawn]
    single = (0.3 + np.random.default_rng(0).uniform(-6e-8, 6e-8, (SAMPLES, 1))).astype(np.float32)
    assert len(np.unique(single)) > 2
    with pytest.warns(scores.UndefinedScore, match="^factor 0: constant"):
        found = scores.mig(np.stack([rounded, *CODES.T], -1), np.stack([rounded, drawn], -1))
    assert np.isnan(found.gaps[0])
    assert found.inputs.varying_latents == 3
    with pytest.warns(scores.UndefinedScore, match="do not vary in any latent"):
        assert scores.mig(single, clean()).inputs.varying_latents == 0
    for varying in ([1.0, 1 + 1e-14], [0.0, 1e-300], [1e300, -1e300], np.array([2023, 2024], np.float16)):
        assert scores.read_codes(np.array(varying)[:, None]).inputs.varying_latents == 1, varying
    factors = np.where(np.arange(SAMPLES) < 200, 0.3, 0.1 + 0.2)  # constant in either part, and in both
    parts = scores.split(CODES[:200], factors[:200], None, (CODES[200:], factors[200:]), 0)
    assert parts.inputs.constant_factors == ("factor 0",)


@pytest.mark.parametrize("name", ["gaussian_total_correlation", "hoyer", "gaussian_wasserstein_correlation"])
def test_one_sample_has_no_score(name):
    for codes, told in (([[1.0, 2.0]], "Got 1."), ([[1.0, 2.0], [None, 1.0]], "Got 1, after 1 rows with missing")):
        with pytest.raises(AxiswiseError, match=rf"`codes` must have at least 2 samples. {told}"):
            getattr(scores, name)(codes, missing="drop")


def test_one_sample_of_members_has_no_agreement():
    codes = np.stack([CODES[:3], CODES[:3]])
    codes[0, 1:] = np.nan
    with pytest.raises(AxiswiseError, match=r"at least 2 samples. Got 1, after 2 rows"):
        scores.agreement(codes, missing="drop")


def test_rows_of_the_same_index_in_another_order_are_refused():
    codes, factors = pd.DataFrame(CODES), clean()
    shuffled = factors.sample(frac=1, random_state=0)
    message = r"must be in the same order. Got the same index in another order; align them .* drop the index"
    for call in (
        lambda: scores.mig(codes, shuffled),
        lambda: scores.mig(codes, shuffled["shape"]),
        lambda: scores.mig(codes, {"shape": shuffled["shape"]}),
        lambda: scores.dci(codes, factors, test=(codes, shuffled)),
        lambda: data.arrays(codes, shuffled),
        lambda: scores.match_latents(codes, codes[::-1]),
    ):
        with pytest.raises(AxiswiseError, match=message):
            call()
    expected = scores.mig(codes, factors).score
    assert scores.mig(codes, shuffled.loc[codes.index]).score == expected
    assert scores.mig(codes.set_index(np.arange(SAMPLES) + 5), factors).score == expected  # other points by name
    assert scores.mig(codes.loc[shuffled.index].reset_index(drop=True), shuffled.to_dict("list")).score != 0


def test_text_that_counts_as_ordered_warns():
    heat = np.array(["low", "mid", "high"])[np.arange(SAMPLES) % 3]
    told = r"^heat: text in the order of the alphabet \(high, low, mid\), read as circular; number levels to order them"
    with pytest.warns(UserWarning, match=told):
        scores.as_factors({"heat": heat}, SAMPLES, "circular")
    with pytest.warns(UserWarning, match=told):
        data.arrays(CODES, {"heat": heat}, kinds=["circular"])
    ordered = pd.Series(heat).astype(pd.CategoricalDtype(["low", "mid", "high"], ordered=True))
    assert scores.as_factors(ordered, SAMPLES, "circular").levels == (("low", "mid", "high"),)


def test_advice_fits_the_function_and_the_values():
    gap, infinite = CODES.copy(), CODES.copy()
    gap[3], infinite[3] = np.nan, np.inf
    for call in (lambda: scores.active_units(gap), lambda: scores.match_latents(gap, CODES)):
        with pytest.raises(AxiswiseError, match=r"diverged, or leave these rows out\.$"):
            call()
    with pytest.raises(AxiswiseError, match=r"diverged, or leave these rows out\.$"):
        scores.mig(infinite, clean(), missing="drop")
    with pytest.raises(AxiswiseError, match=r"diverged, or drop rows with missing values with missing=\"drop\""):
        scores.mig(gap, clean())
    with pytest.raises(AxiswiseError, match=r"; remove or replace such samples\.$"):
        data.arrays(infinite, missing="drop")


# Through the command line


def run(*arguments: object):
    return CliRunner().invoke(app, ["score", *map(str, arguments), "--json", "s.json"], catch_exceptions=False)


def save(frame: pd.DataFrame, name: str) -> None:
    match Path(name).suffix:
        case ".csv":
            frame.to_csv(name, index=False)
        case ".tsv":
            frame.to_csv(name, sep="\t", index=False)
        case ".parquet":
            pytest.importorskip("pyarrow")
            (categories if name.startswith("categories") else lambda frame: frame)(frame).to_parquet(name)
        case ".npy":
            np.save(name, frame.astype(str).to_numpy("U") if name.startswith("text") else integers(frame))
        case ".npz":
            np.savez(name, other=CODES, factors=integers(frame))


FILES = ["f.csv", "f.tsv", "f.parquet", "categories.parquet", "f.npy", "f.npz", "text.npy"]


@pytest.mark.parametrize("name", FILES)
def test_every_file_with_each_defect(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("codes.npy", CODES)
    read = f"{name}:factors" if name.endswith(".npz") else name
    named = name.endswith((".csv", ".tsv", ".parquet"))
    shape, scale = ("shape", "scale") if named else ("f0", "f1")

    def scored(*options: str) -> tuple[str, dict[str, Any]]:
        output = run("codes.npy", read, "--scores", "MIG", "--kinds", "discrete", *options, "--force").output
        return output, json.loads(Path("s.json").read_text())

    save(clean(), name)
    _, about = scored()
    assert about["rows"][0]["value"] == scores.mig(CODES, integers(clean())).score
    assert (about["factor_names"], about["dropped"]) == ([shape, scale], 0)
    levelled = named or name.startswith("text")
    assert about["levels"][0] == (sorted(SHAPES) if levelled else None)
    save(constant(), name)
    output, about = scored()
    assert f"note: {shape}: constant, so that it has no score; means are over the others" in output
    assert (about["constant_factors"], about["rows"][0]["detail"]["gaps"][0][0]) == ([shape], None)
    if name.startswith("text"):  # text of numpy has no gaps
        return
    save(with_gaps(), name)
    with pytest.raises(AxiswiseError, match=rf"in 2 of 300 rows, in {shape}, {scale}; drop .*--drop-missing"):
        scored()
    output, about = scored("--drop-missing")
    kept = with_gaps().dropna().index
    assert about["rows"][0]["value"] == scores.mig(CODES[kept], integers(clean())[kept]).score
    assert (about["dropped"], about["samples"]) == (2, SAMPLES - 2)
    assert f"note: 2 of 300 rows dropped: values are missing in 2 of 300 rows, in {shape}, {scale} of {name}" in output


def test_a_table_of_codes_with_gaps_and_codes_that_do_not_vary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(clean(), "f.csv")
    frame = pd.DataFrame(CODES, columns=["a", "b", "c"])
    frame.loc[4, "b"] = None
    frame.to_csv("gaps.csv", index=False)
    output = run("gaps.csv", "f.csv", "--scores", "Mig,gaussian-total-correlation", "--drop-missing").output
    assert "note: 1 of 300 rows dropped: values are missing in 1 of 300 rows, in b of gaps.csv" in output
    assert "gaussian_total_correlation" in output
    np.save("dead.npy", np.stack([CODES, np.zeros_like(CODES)]))
    output = run("dead.npy", "f.csv", "--scores", "mig", "--force").output
    assert "note: member 1: codes do not vary in any latent: the model has collapsed" in output
    assert json.loads(Path("s.json").read_text())["varying_latents"] == [3, 0]


def test_chance_counts_the_factors_that_vary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("codes.npy", CODES)
    save(constant().assign(more=clean()["shape"]), "f.csv")
    run("codes.npy", "f.csv", "--scores", "factor_vae")
    assert json.loads(Path("s.json").read_text())["rows"][0]["chance"] == 1 / 2


# Of trained populations


def test_records_say_that_no_latent_is_active():
    """At a weight this large every posterior is the prior, yet the means vary, and MIG is not 0."""
    square = data.synth_linear(samples=500)
    members = grid(
        model=models.linear(3, 2),
        objective=[objectives.BetaVAE(beta) for beta in (0.001, 1e3)],
        optimizer=optimizers.Adam(lr=0.02),
        steps=300,
    )
    trained = train(members, square, progress=False)
    alive, dead, *_ = evaluate(trained, square, [scores.mig, scores.active_units])
    assert dead.value > 0.0
    assert (alive.detail["active_latents"], dead.detail["active_latents"]) == (2, 0)
    assert "inputs" not in dead.detail
    flat = data.arrays(square.x(torch.arange(500)), {"side": np.arange(500) % 3, "colour": ["red"] * 500})
    record, *_ = evaluate(trained, flat, [scores.mig])
    assert record.detail["constant_factors"] == ["colour"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([2**53, 2**53 + 1], r"integers up to 2\^53, .* Got 9007199254740993; number the levels"),
        (np.array([2**63, 1], np.uint64), r"integers up to 2\^53"),
        ([2**70, 1], r"integers up to 2\^53"),
        ([np.complex64(1), np.complex64(2)], r"must contain numbers, truth values or text. Got"),
        ([np.timedelta64(1, "D")], r"must contain numbers, truth values or text. Got"),
        (["a", 1j], r"must contain numbers, truth values or text. Got 1j"),
        (np.array(["2026-01-01"], "datetime64[D]"), r"must contain .* Got"),
    ],
)
def test_levels_that_would_merge_and_cells_that_are_no_numbers_are_refused(column, message):
    with pytest.raises(AxiswiseError, match=message):
        as_columns(column)
