"""The documentation's site: `make docs` writes it into build/docs, and fails at any warning."""

import hashlib
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

from jupyter_client import KernelManager

import interop

ROOT = Path(__file__).parent.parent


def fingerprint() -> str:
    """A hash of this package's sources, on which what a notebook prints depends beside its code."""
    kinds = {".cpp", ".h", ".pxd", ".py", ".pyx"}
    found = (path for part in ("csrc", "interop", "pxd") for path in sorted((ROOT / part).rglob("*")))
    return hashlib.sha256(b"".join(path.read_bytes() for path in found if path.suffix in kinds)).hexdigest()[:16]


project = "torch-interop"
author = "the torch-interop contributors"
project_copyright = author
version = release = interop.__version__

extensions = [
    "myst_nb",  # which is myst_parser, and runs notebooks
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "command_help",
    "lexers",
    "default_role",
    "folding",
    "reading",
    "search_first",
]
exclude_patterns = ["extensions", "upstream", "**/__pycache__"]

# The tutorials are run, and what they print is the page. They run again when their code changes, or this package.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks" / fingerprint())
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
if hasattr(KernelManager, "transport_encryption"):  # without it, each kernel of jupyter_client 8.10 prints a warning
    KernelManager.transport_encryption.default_value = "auto"
os.environ.setdefault("INTEROP_CACHE_DIR", str(ROOT / "build" / "notebooks" / "modules"))

# What is quoted is copied and searched for, so quotes stay as they are; two hyphens are a dash.
smartquotes_action = "D"

# Anchors of headings as GitHub makes them, so that links with a # work in both.
myst_heading_anchors = 4
# HTML for images that must be small.
myst_enable_extensions = ["deflist", "html_image"]

# Docstrings are in NumPy's style; their `names` are links where there is such a name, see extensions/default_role.py.
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = True
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"  # a class stands above its methods

# Every reference must lead somewhere, but for these.
nitpicky = True
nitpick_ignore_regex = [
    # Names of other projects, whose inventories lie on the network; this site is built without.
    (r"py:.*", r"(torch|numpy|setuptools|Cython|IPython|collections|os|types|pathlib)(\..*)?"),
    # Words that NumPy's style has in the place of a type.
    (r"py:class", r"module|capsule|sequence|context manager|callable|class|iterable|a stand-in|.* \| None"),
    # What a public function returns, and nobody makes or names.
    (r"py:class", r"interop\._bridges\.Setting"),
]

html_theme = "furo"
html_title = f"torch-interop {release}"
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_scaled_image_link = False  # it would be a link in a link in the table of experiments
# Neither prompts nor what a command prints is copied; a block of Python without prompts is copied as it is.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
