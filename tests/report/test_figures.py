"""What the figures show, read from the matplotlib objects before they become bytes."""

import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from scipy import stats

from axiswise.report import figures


def build(draw, *arguments):
    """The figure behind a picture: `functools.wraps` keeps the function that builds it."""
    return draw.__wrapped__(*arguments)


def kind(x, **y) -> figures.Curve:
    return figures.Curve("a", np.array(x, float), {name: np.array(values, float) for name, values in y.items()})


def test_curve_is_the_mean_and_the_band_its_interval():
    figure = build(figures.curves, [kind([1, 1, 10, 10], mig=[0.1, 0.3, 0.5, np.nan])], ["mig"], "β")
    (axes,) = figure.axes
    mean, dots = axes.lines
    assert mean.get_xydata().tolist() == [[1, 0.2], [10, 0.5]]
    assert dots.get_xydata().tolist() == [[1, 0.1], [1, 0.3], [10, 0.5]]
    band = axes.collections[0].get_paths()[0].vertices
    low, high = stats.t.interval(0.95, 1, loc=0.2, scale=0.1)  # standard error of 0.1 and 0.3: 0.1
    np.testing.assert_allclose(np.unique(band[band[:, 0] == 1][:, 1]), [low, high], rtol=1e-12)
    assert set(band[band[:, 0] == 10][:, 1]) == {0.5}  # a single member has no interval
    assert -0.1 < axes.get_ylim()[0] < axes.get_ylim()[1] < 1.1  # the axes cover the members, not the band
    assert axes.get_xscale() == "log"
    assert axes.get_title(loc="left") == "MIG"


def test_axis_is_logarithmic_from_one_decade_on():
    scales = [
        build(figures.curves, [kind([1, last], mig=[0, 1])], ["mig"], "β").axes[0].get_xscale() for last in (9.9, 10)
    ]
    assert scales == ["linear", "log"]


def test_colours_of_the_square_differ_between_its_corners_and_tiles():
    corners = figures.factor_colours(np.array([[0, 0], [1, 0], [0, 1], [1, 1]], float))
    assert len({tuple(colour) for colour in corners.tolist()}) == 4
    assert ((corners >= 0) & (corners <= 1)).all()
    beside = figures.factor_colours(np.array([[0.199, 0.5], [0.201, 0.5]]))
    assert np.abs(np.diff(beside, axis=0)).max() > 0.05


def test_latent_planes_share_their_scale_and_keep_the_codes():
    rng = np.random.default_rng(0)
    factors, codes = rng.random((20, 2)), rng.normal(size=(3, 20, 2))
    planes = [figures.Plane(values, factors, "note") for values in codes]
    figure = build(figures.latent_planes, [("one", planes[:2]), ("two", planes[2:])], ["u", "v"])
    key, *panels = figure.axes
    assert (key.get_xlabel(), key.get_ylabel()) == ("u", "v")
    for axes, values in zip(panels, codes, strict=True):
        (dots,) = [found for found in axes.collections if isinstance(found, PathCollection)]
        np.testing.assert_array_equal(dots.get_offsets(), values)
        assert axes.get_xlim() == axes.get_ylim() == panels[0].get_xlim()
        assert axes.get_xlim()[1] > np.abs(codes).max()
    assert [axes.get_ylabel() for axes in panels] == ["one", "", "two"]


def test_traversals_are_in_the_order_of_their_kl_and_name_passive_latents():
    images = np.arange(3)[:, None, None, None, None] / 4 * np.ones((3, 5, 1, 6, 6))
    values, kl, active = np.linspace(-2, 2, 5), np.array([0.001, 2.0, 1.0]), np.array([0, 1, 1], np.uint8)
    (axes,) = build(figures.traversals, images, values, kl, active, "title").axes
    assert [text.get_text() for text in axes.texts] == ["z1  2.00 nats", "z2  1.00 nats", "z0  0.00 nats\npassive"]
    colours = [text.get_color() for text in axes.texts]
    assert colours[0] == colours[1] != colours[2]
    picture = axes.images[0].get_array()
    assert [picture[row, 4, 0] for row in (4, 12, 20)] == [0.25, 0.5, 0.0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["−2", "−1", "0", "1", "2"]


@pytest.mark.parametrize("channels", [1, 3])
def test_mosaic_puts_every_image_in_its_place(channels: int):
    images = np.random.default_rng(0).random((2, 3, channels, 4, 5))
    sheet = figures.mosaic(images, gap=2)
    assert sheet.shape == (12, 21, 3)
    for row, column in np.ndindex(2, 3):
        tile = sheet[row * 6 + 1 : row * 6 + 5, column * 7 + 1 : column * 7 + 6]
        expected = np.broadcast_to(images[row, column].transpose(1, 2, 0), (4, 5, 3))
        np.testing.assert_array_equal(tile, expected)
    assert (sheet[0] == 1).all()


def test_training_lines_are_coloured_by_the_sweep():
    step = np.arange(5)
    lines = [figures.Line(step, {"loss": np.full(5, value)}, value) for value in (1.0, 10.0, 1.0)]
    axes = build(figures.training, lines, ["loss"], "β").axes[0]
    first, third, mean, second = (line.get_color() for line in axes.lines)
    assert first == third == mean != second


def test_many_entries_are_running_means_and_members_of_one_value_have_a_mean():
    step, noise = np.arange(100), np.random.default_rng(0).normal(size=(3, 100))
    noise[2, 60:] = np.nan  # diverged: drawn, and not part of the mean
    lines = [figures.Line(step, {"loss": 5.0 + values}, np.nan) for values in noise]
    (axes,) = build(figures.training, lines, ["loss"], None).axes
    *members, mean = axes.lines
    for line, values in zip(members, 5.0 + noise, strict=True):
        np.testing.assert_allclose(line.get_xdata(), np.arange(97) + 1.5)
        expected = [values[start : start + 4].mean() for start in range(97)]
        np.testing.assert_allclose(np.asarray(line.get_ydata()), expected)
    np.testing.assert_allclose(mean.get_ydata(), (members[0].get_ydata() + members[1].get_ydata()) / 2)


@pytest.mark.parametrize(
    ("values", "measure"), [([-3.0, -2.0], "own"), ([1e-3, 5.0], "loss"), ([7.0, 7.0], "loss"), ([0.0, 0.0], "loss")]
)
def test_axes_of_strips_cover_the_members_however_wide_their_interval(values, measure):
    (axes,) = build(figures.strips, [kind([1, 1], **{measure: values})], [measure]).axes
    low, high = axes.get_ylim()
    assert low < min(values)
    assert max(values) < high < max(values) + 1 + abs(max(values))
    dots, bar, interval = axes.lines
    assert bar.get_ydata().tolist() == [np.mean(values)] * 2
    expected = stats.t.interval(0.95, 1, loc=np.mean(values), scale=stats.sem(values) or 1e-300)
    np.testing.assert_allclose(interval.get_ydata(), expected, rtol=1e-9, atol=1e-12)
    assert len(dots.get_ydata()) == 2


def test_a_strip_of_one_member_has_no_interval():
    (axes,) = build(figures.strips, [kind([1], mig=[0.5])], ["mig"]).axes
    assert len(axes.lines) == 2


def test_heat_maps_hold_the_values_and_share_their_scale():
    first = np.array([[0.0, 0.75, -0.001], [np.nan, 1.0, 0.5]])
    maps = [figures.HeatMap("one", first), figures.HeatMap("two", first / 2)]
    figure = build(figures.heat_maps, maps, ["shape", "scale"], ["z0", "z1", "z2"], "share")
    upper, lower, *_ = figure.axes
    np.testing.assert_array_equal(upper.images[0].get_array().filled(np.nan), first)
    np.testing.assert_array_equal(lower.images[0].get_array().filled(np.nan), first / 2)
    assert upper.images[0].norm is lower.images[0].norm
    assert (upper.images[0].norm.vmin, upper.images[0].norm.vmax) == (0.0, 1.0)
    assert [text.get_text() for text in upper.texts] == [".00", ".75", ".00", "–", "1.00", ".50"]
    assert [text.get_text() for text in upper.get_yticklabels()] == ["shape", "scale"]
    assert [text.get_text() for text in lower.get_xticklabels()] == ["z0", "z1", "z2"]
    assert (upper.get_title(loc="left"), lower.get_title(loc="left")) == ("one", "two")
    assert figure.get_suptitle() == "share"
    light, dark = upper.texts[4].get_color(), upper.texts[0].get_color()
    assert light != dark == "white"


def test_heat_maps_of_many_latents_leave_numbers_out():
    wide = [figures.HeatMap("", np.zeros((2, 200)))]
    figure = build(figures.heat_maps, wide, ["a", "b"], [f"latent {place}" for place in range(200)], "share", 1.0)
    axes = figure.axes[0]
    assert not axes.texts
    assert figure.get_figwidth() < 17
    assert len(axes.get_xticks()) < 100
    assert axes.images[0].norm.vmax == 1.0


def test_tick_labels_of_a_sweep_do_not_touch():
    values = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    measures = ["mig", "dto", "polarization", "own"]
    figure = build(figures.curves, [kind(values, **dict.fromkeys(measures, values))], measures, "β")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for axes in figure.axes:
        labels = [text for text in axes.get_xticklabels() if text.get_text()]
        boxes = [text.get_window_extent() for text in labels]
        assert [text.get_text() for text in labels] == ["1e-4", "0.01", "1"]
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_values_that_are_not_powers_of_ten_keep_their_digits():
    (axes,) = build(figures.curves, [kind([2.5e-4, 1.0], mig=[0, 1])], ["mig"], "β").axes
    FigureCanvasAgg(axes.figure).draw()
    assert [text.get_text() for text in axes.get_xticklabels()] == ["2.5e-4", "1"]


def test_the_beginning_of_training_does_not_decide_the_axis():
    for count in (40, 1000):  # of a thousand, running means are drawn
        step = np.arange(count)
        loss = np.where(step < count / 20, 1000.0, 2.0 + step / count)
        (axes,) = build(figures.training, [figures.Line(step, {"loss": loss}, np.nan)], ["loss"], None).axes
        low, high = axes.get_ylim()
        assert 1.98 < low < 2.05
        assert 2.95 < high < 3.2
        assert axes.lines[0].get_ydata()[0] == 1000.0  # drawn all the same


def test_passive_latents_are_grey_whatever_their_kl():
    step, kl = np.arange(3), np.array([[9.0, 0.1], [0.1, 0.1], [0.005, 0.05]])
    (axes,) = build(figures.latent_courses, [("name", step, kl, np.array([True, False]))]).axes
    passive, active = (line.get_color() for line in axes.lines)  # in the order of their KL
    assert (passive, active) == ("#c3cad2", figures.PALETTE[1])
    assert 0.1 < axes.get_ylim()[1] < 0.11  # that of the values after the beginning


def test_long_names_of_rows_of_planes_do_not_touch():
    rng = np.random.default_rng(0)
    planes = [figures.Plane(rng.normal(size=(20, 2)), rng.random((20, 2)), "") for _ in range(8)]
    figure = build(figures.latent_planes, [(f"along the axes, β = {b}", planes) for b in (0.001, 0.01)], ["u", "v"])
    FigureCanvasAgg(figure).draw()
    upper, lower = (axes.yaxis.label.get_window_extent() for axes in figure.axes if axes.get_ylabel().startswith("al"))
    assert lower.y1 < upper.y0


def test_a_notebook_shows_a_figure_and_not_its_bytes():
    drawn = figures.contact(np.zeros((1, 1, 8, 8)), None)
    assert drawn._repr_png_() == bytes(drawn)
    assert drawn.startswith(b"\x89PNG")
    assert len(repr(drawn)) < 100
