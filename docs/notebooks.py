"""Runs the code of the pages side by side, as many as there are cores, before Sphinx reads them one after the other.

What was run is in the cache of notebooks, from which Sphinx takes it, and so does a second build.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from myst_nb.core.execute import create_client
from myst_nb.core.read import create_nb_reader
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

FIRST = ("tutorials", "explanation")  # folders with the longest pages, lest one of these ends alone


def run(app: Sphinx, path: Path) -> None:
    """Runs the cells of a page in a process of their own, unless the cache has them; nothing if it has none."""
    text, settings = path.read_text(encoding="utf-8"), app.env.mystnb_config
    reader = create_nb_reader(str(path), app.env.myst_config, settings, text)
    if reader is not None:
        with create_client(reader.read(text), str(path), settings, getLogger(__name__), reader.read_fmt):
            pass  # entering it runs the cells


def run_all(app: Sphinx) -> None:
    """Runs all pages; the process that draws the gallery meanwhile has one of the cores until it ends."""
    pages = sorted(Path(app.srcdir).rglob("*.md"), key=lambda path: (path.parent.name not in FIRST, path))
    with ThreadPoolExecutor(cores()) as pool:
        if drawing := vars(app).get("drawing"):
            pool.submit(drawing.wait)
        running = [pool.submit(run, app, path) for path in pages]
        try:
            for page in running:
                page.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            if drawing:
                drawing.terminate()
            raise


def cores() -> int:
    """How many processes may compute at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", run_all, priority=900)  # when settings are read, and the gallery is begun
    return {"parallel_read_safe": True}
