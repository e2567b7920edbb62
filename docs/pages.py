"""The pages of the gallery, drawn from the committed records: by a process of its own, while Sphinx reads the others.

``python docs/pages.py FOLDER`` draws them alone.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

RESULTS = Path(__file__).parents[1] / "results"
FOLDER = "gallery"  # of the site
STAMP = ".made-from"  # what the pages were made from, so that a second build draws nothing again


def draw(folder: Path) -> None:
    """All pages, from a copy of the results: commands draw into the folder they read."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        results = Path(place) / "results"
        shutil.copytree(RESULTS, results)
        for study in ("objectives", "comparison"):
            subprocess.run([sys.executable, "-m", "axiswise", "report", str(results / study)], check=True)
            (folder / study).mkdir(exist_ok=True)
            shutil.copy(results / study / "report.html", folder / study)
        subprocess.run([sys.executable, "-m", "axiswise_papers", "gallery", str(results)], check=True)
        shutil.copy(results / "gallery.html", folder / "claims.html")
        for path in results.rglob("records.jsonl.gz"):  # which these pages link to
            target = folder / path.relative_to(results)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    explore(folder / "explorer.html")
    (folder / STAMP).write_text(made_from())


def explore(path: Path) -> None:
    """A page in which decoders run: five β-VAEs of small discs, trained in some seconds."""
    import axiswise as aw

    discs = aw.data.materialized(aw.data.small_sprites((16, 16, 4), travel=(8.0, 4.0)))
    members = aw.grid(
        model=aw.models.mlp(
            (1, 16, 16), 3, encoder=(64, 64), decoder=(64, 64), likelihood=aw.distributions.Bernoulli()
        ),
        objective=aw.objectives.BetaVAE(0.25),
        optimizer=aw.optimizers.Adam(lr=aw.schedules.Cosine(3e-3, 0.0, 1_500)),
        steps=1_500,
        seed=range(5),
    )
    population = aw.train(members, discs, progress=False)
    values = aw.evaluate(population, discs, [aw.scores.mig], store=False)
    found = aw.explore(
        population,
        discs,
        scores={record.member: {"mig": record.value} for record in values if record.value is not None},
        title="Five β-VAEs of small discs",
        summary="A disc moves across and down, and grows. Move a latent of one model, and those of the others follow.",
    )
    aw.report.explorer(found, path)


def made_from() -> str:
    """A digest of the records and of what draws them."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    drawing = (path for kind in ("py", "js", "css") for path in (RESULTS.parent / "src").rglob(f"*.{kind}"))
    for path in sorted([*RESULTS.rglob("*.json*"), *drawing]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def write_results(app: Sphinx) -> None:
    """The page of results from that of the repository: what has no page here is named and not linked."""
    text = (RESULTS / "README.md").read_text()
    text = re.sub(r"!\[([^\]]*)\]\(([^)]*)\)", r"![\1](../../results/\2)", text)
    text = re.sub(r"\]\((errata|differences)\.md\)", r"](../explanation/\1.md)", text)
    text = re.sub(r"(?<!!)\[([^\]]*)\]\((?!http|#|\.\./explanation)[^)]*\)", r"\1", text)
    path = Path(app.srcdir) / FOLDER / "results.md"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def begin(app: Sphinx) -> None:
    """Starts to draw, unless the pages are there."""
    write_results(app)
    folder = Path(app.outdir) / FOLDER
    stamp = folder / STAMP
    if app.builder.format == "html" and not (stamp.exists() and stamp.read_text() == made_from()):
        app.drawing = subprocess.Popen(  # pyright: ignore[reportAttributeAccessIssue] (Sphinx keeps what extensions set)
            [sys.executable, __file__, str(folder)], stdout=_log(app).open("w"), stderr=subprocess.STDOUT
        )


def end(app: Sphinx, problem: Exception | None) -> None:
    """Waits until all is drawn."""
    process = vars(app).pop("drawing", None)  # Sphinx tells of its end again when that of another extension fails
    if process is None:
        return
    if problem:
        process.terminate()
    if process.wait() and not problem:
        raise ExtensionError(f"The pages of the gallery could not be drawn:\n{_log(app).read_text()}")


def _log(app: Sphinx) -> Path:
    """Where the process that draws writes what it has to say: a pipe would be full at some time."""
    return Path(app.doctreedir) / "gallery.log"


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", begin)
    app.connect("build-finished", end)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
