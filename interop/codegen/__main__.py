"""``python -m interop.codegen PXD INCLUDE``: write what depends on the installed torch into these two folders."""

import sys
from pathlib import Path

import torch

from interop.codegen.write import generate

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    generate(Path(sys.argv[1]), Path(sys.argv[2]), torch.__version__)
