"""Sphinx: pages in Markdown, the API from docstrings, the gallery from examples/."""

import telic

project = "telic"
author = "The telic developers"
copyright = "2026, The telic developers"
release = telic.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_toc_level": 2}
html_static_path = ["_static"]
html_css_files = ["telic.css"]
html_show_sourcelink = False
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # README-style links to files outside docs/
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "download_all_examples": False,
    "show_signature": False,
}


def leave_out(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to estimators: its texts lead into its own glossary."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def setup(app):
    """Tell Sphinx of `leave_out`."""
    app.connect("autodoc-skip-member", leave_out)
