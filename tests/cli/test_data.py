"""`axiswise data`: the list, and datasets of the user's own files."""

import numpy as np
from PIL import Image
from typer.testing import CliRunner

from axiswise.cli import app
from axiswise.cli.data import _datasets, _references


def axiswise(*arguments: str):
    return CliRunner().invoke(app, ["data", *arguments], catch_exceptions=False)


def blocks(output: str) -> dict[str, dict[str, list[str]]]:
    """The long list as dataset → what → lines."""
    found, name = {}, ""
    for line in output.splitlines():
        if line.startswith(" "):
            what, _, about = line.strip().partition(" ")
            found[name].setdefault(what, []).append(about.strip())
        else:
            name = line.split()[0]
            found[name] = {}
    return found


def test_list_names_every_dataset_once():
    lines = axiswise("list").output.splitlines()
    assert [line.split()[0] for line in lines] == list(_datasets())
    assert len({len(line) - len(line.split(maxsplit=1)[1]) for line in lines}) == 1  # one column begins below another
    assert all(line[19:].strip().endswith(".") for line in lines)  # the first sentence of the docstring


def test_long_list_says_where_files_are_or_would_be(tmp_path, monkeypatch):
    monkeypatch.setenv("AXISWISE_DATA", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").touch()
    listed = blocks(axiswise("list", "--long").output)
    assert list(listed) == list(_datasets())
    sprites = tmp_path / "dsprites" / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
    assert listed["dsprites"] == {
        "origin": ["original"],
        "licence": ["Apache-2.0"],
        "citation": [
            "Matthey, Higgins, Hassabis and Lerchner, dSprites: disentanglement testing sprites dataset, 2017"
        ],
        "size": ["19.3 MB"],
        "file": [f"{sprites} (not fetched yet)"],
    }
    assert listed["color_dsprites"]["origin"] == ["rendered"]
    assert listed["mnist"]["licence"] == ["CC BY-SA 3.0"]
    assert listed["mnist"]["size"] == ["55.0 MB unpacked"]  # 47,040,016 + 60,008 + 7,840,016 + 10,008 bytes
    assert listed["mnist"]["file"] == [
        f"{tmp_path}/mnist/train-images-idx3-ubyte.gz (not fetched yet)",
        f"{tmp_path}/mnist/train-labels-idx1-ubyte.gz (not fetched yet)",
        f"{tmp_path}/mnist/t10k-images-idx3-ubyte.gz (not fetched yet)",
        f"{tmp_path}/mnist/t10k-labels-idx1-ubyte.gz (present)",
    ]
    assert listed["fashion_mnist"]["licence"] == ["MIT (Zalando SE)"]
    assert listed["celeba"]["folder"] == [f"{tmp_path}/celeba (absent), or --path"]
    assert listed["npz"] == {"origin": ["yours"], "file": ["given by --path"]}
    assert listed["synth_linear"]["origin"] == ["generated"]
    assert listed["synth_linear"]["citation"][0].startswith("Rolinek, Zietlow and Martius, Variational autoencoders")


def test_every_original_says_its_licence_and_citation():
    for name, about in blocks(axiswise("list", "--long").output).items():
        assert "yours" in about["origin"] or about["citation"], name
        assert about["origin"] != ["original"] or about["licence"], name


def test_references_end_where_the_next_section_begins():
    def make():
        """Makes nothing.

        References:
            A. Author, *First*, 2020.
            B. Author, *Second*,
            2021.

        Arguments:
            none: None.
        """

    def bare():
        """Makes nothing."""

    assert _references(make) == "A. Author, First, 2020. B. Author, Second, 2021."
    assert _references(bare) == ""


def test_files_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setenv("AXISWISE_CACHE", str(tmp_path / "cache"))
    for folder in ("cats", "dogs"):
        (tmp_path / "animals" / folder).mkdir(parents=True)
        Image.new("RGB", (20, 30), "red").save(tmp_path / "animals" / folder / "1.png")
    got = axiswise("get", "image_folder", "--path", str(tmp_path / "animals"))
    assert got.output == "image_folder: 2 observations of shape (3, 64, 64); factors folder (discrete, 2)\n"
    np.savez(tmp_path / "mine.npz", imgs=np.zeros((5, 8, 8), np.uint8))
    got = axiswise("get", "npz", "--path", str(tmp_path / "mine.npz"))
    assert got.output == "npz: 5 observations of shape (1, 8, 8); factors none\n"
    sheet = tmp_path / "sheet.png"
    shown = axiswise("show", "image_folder", "--path", str(tmp_path / "animals"), "--out", str(sheet))
    assert shown.output == f"picture: {sheet}\n"
    assert sheet.read_bytes().startswith(b"\x89PNG")
