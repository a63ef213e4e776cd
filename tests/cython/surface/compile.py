"""``python compile.py FILE.pyx``: translate the file in its folder with Cython, and have C++ check the result."""

import subprocess
import sys
import sysconfig
from pathlib import Path

from interop.build import CXX_FLAGS, Extension, cythonize


def main(source: Path) -> int:
    (extension,) = cythonize([Extension(source.stem, [source.name])], quiet=True)
    folders = [*extension.include_dirs, sysconfig.get_path("include")]
    command = ["c++", *CXX_FLAGS, "-fsyntax-only", "-w", "-fmax-errors=20", *(f"-I{folder}" for folder in folders)]
    return subprocess.run([*command, f"{source.stem}.cpp"]).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
