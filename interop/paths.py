"""Where the declarations, headers and sources that modules are built with lie: installed, or in a checkout."""

import os
import tempfile
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent


def get_pxd_dir() -> str:
    """The folder with the ``.pxd`` declarations of ``torch``, ``ATen`` and ``c10``, for Cython's ``include_path``."""
    return _find("pxd", "pxd")


def get_include() -> str:
    """The folder with the C++ headers ``interop/*.h``, for the compiler's include path."""
    return _find("include", "csrc/include")


def get_source_dir() -> str:
    """The folder with the C++ sources that are compiled into other projects' modules."""
    return _find("csrc", "csrc")


def get_cmake_dir() -> str:
    """The folder with the CMake package, for ``interop_DIR``."""
    return _find("share/cmake/interop", "interop/share/cmake/interop")


def get_cache_dir() -> Path:
    """The folder for what is kept between runs: compiled modules, precompiled headers, what NVRTC made.

    It is ``$INTEROP_CACHE_DIR``, else ``torch-interop`` in ``$XDG_CACHE_HOME`` or ``~/.cache``; for a user without a
    home, a folder of this user's where temporary files lie.
    """
    own = os.environ.get("INTEROP_CACHE_DIR")
    if own:
        return Path(own).absolute()
    # The specification of these folders says that a relative one is to be ignored.
    base = os.environ.get("XDG_CACHE_HOME", "")
    base = base if os.path.isabs(base) else os.path.expanduser("~/.cache")
    if not os.path.isabs(base):
        return Path(tempfile.gettempdir(), f"torch-interop-{os.getuid()}")
    return Path(base, "torch-interop")


def make_cache_dir() -> Path:
    """The same folder, made if it was not there; it holds code that will be run, so nobody else may write to it."""
    folder = get_cache_dir()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # which is the mode of the last one alone
    return folder


def _find(installed: str, in_checkout: str) -> str:
    for folder in (_PACKAGE / installed, _CHECKOUT / in_checkout):
        if folder.is_dir():
            return str(folder)
    raise FileNotFoundError(
        f"{_PACKAGE} has no folder {installed!r}, and there is no {_CHECKOUT / in_checkout}: the installation is "
        "incomplete. Reinstall it, in its checkout: pip install --no-build-isolation --force-reinstall --no-deps ."
    )
