"""``python -m interop.codegen FOLDER``: write the generated declarations for the installed torch into FOLDER."""

import sys
from pathlib import Path

import torch

from interop.codegen import generate

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    generate(Path(sys.argv[1]), torch.__version__)
