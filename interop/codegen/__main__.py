"""``python -m interop.codegen PXD INCLUDE STABLE``: write the files for the installed torch into these folders."""

import sys
from pathlib import Path

import torch

from interop.codegen.pxd import generate

if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    generate(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), torch.__version__)
