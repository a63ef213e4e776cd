"""``python compile.py FILE.pyx [RELEASE]``: translate the file with Cython, and check the C++ with the compiler.

Run it in the folder of the file. With a release of torch, it compiles for that release and later ones.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

from interop.build import CXX_FLAGS, Extension, cythonize


def main(source: Path, stable: str | None = None) -> int:
    (extension,) = cythonize([Extension(source.stem, [source.name], stable=stable)], quiet=True)
    given = [f"-I{folder}" for folder in (*extension.include_dirs, sysconfig.get_path("include"))]
    given += [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in extension.define_macros]
    command = ["c++", *CXX_FLAGS, "-fsyntax-only", "-w", "-fmax-errors=20", *given, *extension.sources]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
