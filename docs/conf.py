"""Sphinx: the pages of this folder, the gallery and the reference as one site.

``make docs`` builds it. Pages stay readable where they are: plain Markdown, with links
to files. Nothing is fetched, neither here nor by a reader.
"""

import re

import matplotlib

import cdsk

matplotlib.use("agg")

project = "cdsk"
author = "The cdsk developers"
copyright = author
version = release = cdsk.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
# description.md is for a package index
exclude_patterns = ["description.md", "gallery/*.md", "_templates"]
templates_path = ["_templates"]
nitpicky = True

# blocks that name no language are output and equations
highlight_language = "none"
# links to headings, named as GitHub names them
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib",),
    "doc_module": ("cdsk",),
    "backreferences_dir": "api/used",
    "show_memory": False,
    "write_computation_times": False,
    "image_srcset": ["2x"],
    "remove_config_comments": True,
}

toc_object_entries_show_parents = "hide"
html_theme = "pydata_sphinx_theme"
html_title = f"cdsk {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}


# Files that are not in this folder -> the pages that show them.
PAGES = {
    r"README\.md": "readme.md",
    r"CHANGELOG\.md": "changelog.md",
    r"CONTRIBUTING\.md": "contributing.md",
    r"examples/gallery\)": "gallery/index.rst)",
    r"examples/gallery/(\w+)\.py": r"gallery/\1.rst",
}


def lead_to_pages(app, docname, source):
    """Make links to files beside this folder links to pages."""
    up = "../" * docname.count("/")
    for file, page in PAGES.items():
        source[0] = re.sub(rf"\]\((?:\.\./)+{file}", f"]({up}{page}", source[0])


def lead_from_here(app, path, docname, source):
    """Make links of an included file, which is beside this folder, links from here."""
    source[0] = re.sub(r"\]\((?!\w+:|#)", "](../", source[0])
    source[0] = source[0].replace("](../docs/", "](")
    lead_to_pages(app, docname, source)


def leave_out(app, what, name, obj, skip, options):
    """What every estimator has from scikit-learn is told in its own documentation."""
    module = getattr(obj, "__module__", None) or ""
    return skip or module.split(".")[0] == "sklearn"


def setup(app):
    """What Sphinx calls."""
    app.connect("source-read", lead_to_pages)
    app.connect("include-read", lead_from_here)
    app.connect("autodoc-skip-member", leave_out)
