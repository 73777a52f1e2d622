"""How Sphinx builds the documentation: ``make docs`` does, and stops at the first warning."""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

from tools.reference import write_references  # noqa: E402

project = "askalike"
author = "The askalike developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "Thumbs.db", ".DS_Store"]
napoleon_custom_sections = [("Source", "notes"), ("Differs", "notes")]
html_theme = "furo"
html_title = "askalike"
html_extra_path = ["openapi.json"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]

write_references(FOLDER)
