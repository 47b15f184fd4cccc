"""Sphinx configuration: pages of this folder, the gallery and the reference.

``make docs`` builds the site. Pages are plain Markdown with links to files, so they can
be read in place. Neither the build nor the site uses the network.
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
# description.md is for the package index
exclude_patterns = ["description.md", "gallery/*.md", "_templates"]
templates_path = ["_templates"]
nitpicky = True

# blocks without a language are output and equations
highlight_language = "none"
# anchors of headings as on GitHub
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


# Files outside this folder -> the pages that include them.
PAGES = {
    r"README\.md": "readme.md",
    r"CHANGELOG\.md": "changelog.md",
    r"CONTRIBUTING\.md": "contributing.md",
    r"examples/gallery\)": "gallery/index.rst)",
    r"examples/gallery/(\w+)\.py": r"gallery/\1.rst",
}


def link_to_pages(app, docname, source):
    """Replace links to files outside this folder by links to pages."""
    up = "../" * docname.count("/")
    for file, page in PAGES.items():
        source[0] = re.sub(rf"\]\((?:\.\./)+{file}", f"]({up}{page}", source[0])


def adjust_included_links(app, path, docname, source):
    """Make the links of an included file relative to this folder."""
    source[0] = re.sub(r"\]\((?!\w+:|#)", "](../", source[0])
    source[0] = source[0].replace("](../docs/", "](")
    link_to_pages(app, docname, source)


def skip_inherited(app, what, name, obj, skip, options):
    """Skip members inherited from scikit-learn, which documents them."""
    module = getattr(obj, "__module__", None) or ""
    return skip or module.split(".")[0] == "sklearn"


def setup(app):
    """Connect the functions above to Sphinx events."""
    app.connect("source-read", link_to_pages)
    app.connect("include-read", adjust_included_links)
    app.connect("autodoc-skip-member", skip_inherited)
