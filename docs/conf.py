"""The documentation: `make docs` writes it to ``build/docs``, one folder that opens from disk."""

import os
import sys
from pathlib import Path

from axiswise import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for the extension beside this file, and below for the notebooks
os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models gain nothing from more, and two processes share the cores
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # pages call `axiswise`
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))

project = "axiswise"
author = "The axiswise contributors"
copyright = "the axiswise contributors, Apache-2.0"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "reference",  # pages of the public names, made from the source
    "pages",  # pages of the gallery, made from the records
    "notebooks",  # the code of the pages, run side by side
    "links",  # every link of the built site is checked
    "sphinx-mathjax-offline",  # formulas without a network
]
exclude_patterns = ["**.ipynb_checkpoints"]

html_theme = "pydata_sphinx_theme"
html_title = "axiswise"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_context = {"default_mode": "auto"}  # light or dark as the reader's system; without it the theme complains
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"start": []}

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_in_temp = True  # pages write folders, such as runs/
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
default_role = "code"  # single backticks of docstrings
nitpicky = True  # every cross-reference must lead somewhere, but for names of other projects and of private modules
nitpick_ignore_regex = [
    ("py:.*", r"(ndarray|P|(jaxtyping|collections|numpy|scipy|torch|pathlib|matplotlib|rich|typer|pandas)\..*)"),
    ("py:.*", r"axiswise\.(.*\.)?_.*"),
    # What public functions take or return and no package exports; it is read by its fields.
    ("py:class", r"axiswise\.attack\.(judge\.Verdict|arms\.Weights)"),
    ("py:class", r"axiswise\.scores\.(score\.Function|inputs\.(Codes|Pair|Population)Read)"),
    ("py:class", r"axiswise\.population\.(member\.Choices|loop\.Finished)"),
]
suppress_warnings = ["ref.python"]  # axis letters in types, such as "n x", look like names of attributes
python_maximum_signature_line_length = 100
napoleon_numpy_docstring = False
napoleon_use_rtype = False
