"""How Sphinx builds the documentation: ``make docs`` does, and stops at the first warning."""

project = "askalike"
author = "The askalike developers"
extensions = ["myst_parser"]
exclude_patterns = ["_build", "Thumbs.db", ".DS_Store"]
html_theme = "furo"
html_title = "askalike"
html_extra_path = ["openapi.json"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
nitpicky = True
