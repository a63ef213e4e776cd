"""The folders of the declarations, headers and sources for building modules, and the folder of the cache."""

import contextlib
import functools
import os
import stat
import sysconfig
import tempfile
from collections.abc import Collection
from pathlib import Path

from interop.private import NotPrivateError, check, make_folders, note, open_folder

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent

_INCOMPLETE = (
    "the installation is incomplete. Reinstall it, in its checkout: pip install --no-build-isolation --force-reinstall "
    "--no-deps ."
)

STABLE_LIBRARY = "interop_stable_t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "interop_stable"
"""The name of the static library for modules for many releases of torch. Without a GIL, objects are
laid out otherwise."""


def get_pxd_dir() -> str:
    """The folder with the ``.pxd`` declarations of ``torch``, ``ATen`` and ``c10``, for Cython's ``include_path``."""
    return _find("pxd", "pxd")


def get_include() -> str:
    """The folder with the C++ headers ``interop/*.h``, for the compiler's include path."""
    return _find("include", "csrc/include")


def get_stable_dir() -> str:
    """The folder whose ``pxd`` and ``include`` precede the two above in builds for many releases of torch."""
    return _find("stable", "stable")


def get_stable_library() -> str:
    """The static library for modules that are built for many releases of torch, from stable/cold.cpp."""
    library = os.path.join(get_stable_dir(), f"lib{STABLE_LIBRARY}.a")
    if not os.path.isfile(library):
        raise FileNotFoundError(f"there is no {library}: {_INCOMPLETE}")
    return library


def get_source_dir() -> str:
    """The folder with the C++ sources that are compiled into other projects' modules."""
    return _find("csrc", "csrc")


def get_cmake_dir() -> str:
    """The folder with the CMake package, for ``interop_DIR``."""
    return _find("share/cmake/interop", "interop/share/cmake/interop")


def get_cache_dir() -> Path:
    """The folder of the cache: compiled modules, precompiled headers and NVRTC's kernels.

    It is ``$INTEROP_CACHE_DIR``, else ``torch-interop`` in ``$XDG_CACHE_HOME`` or ``~/.cache``. For a user who has no
    home, or whose home others can write to, it is a per-user folder in the folder for temporary files.
    """
    own = os.environ.get("INTEROP_CACHE_DIR")
    if own:
        return Path(own).absolute()
    # The specification says to ignore a relative path here.
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base) and os.environ.get("HOME") != "":  # Python would expand ~/.cache to /.cache
        base = os.path.expanduser("~/.cache")
    return Path(base, "torch-interop") if os.path.isabs(base) and _is_private(base) else _temporary()


@functools.cache
def _is_private(base: str) -> bool:
    """Whether nobody else can replace a folder that is created there. If others can, note it.

    In containers, homes that belong to other users or groups are common, and not the user's choice.
    """
    for folder in (Path(base), *Path(base).parents):
        try:
            with open_folder(folder):
                return True
        except NotPrivateError as error:
            note(f"torch-interop keeps compiled modules in {_temporary()}, not in {base}: {error}")
            return False
        except FileNotFoundError:
            continue  # it will be created for us alone
        except OSError:
            break  # its first use reports the problem
    return True


def _temporary() -> Path:
    return Path(tempfile.gettempdir(), f"torch-interop-{os.getuid()}")


def make_cache_dir() -> Path:
    """The folder of `get_cache_dir`, created if missing. It holds code that will run, so nobody else may write to it.

    If others can, and that cannot be changed, the function raises `NotPrivateError`, which says what to do.
    """
    folder = get_cache_dir()
    make_folders(folder)
    with open_folder(folder.parent) as parent:  # from here on nobody else can replace the folder
        state = os.stat(folder.name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISLNK(state.st_mode):
        check(str(folder), state)
        if folder == _temporary():
            raise NotPrivateError(
                f"the cache {folder} is a link to {os.readlink(folder)}, not a folder; remove it, or name a folder of "
                "your own in the environment variable INTEROP_CACHE_DIR"
            )
    keep_private(folder, {"jit", "nvrtc"})
    return folder


def keep_private(folder: Path, names: Collection[str] | None = None) -> None:
    """Revoke others' permission to write to a folder of ours; raise `NotPrivateError` if that is impossible.

    With `names`, a folder that holds anything else is not ours alone, and its permissions stay unchanged.
    """
    state = os.stat(folder)
    mode = stat.S_IMODE(state.st_mode)
    if mode & stat.S_ISVTX or (mode & 0o022 and names is not None and not set(os.listdir(folder)) <= {*names}):
        raise NotPrivateError(
            f"INTEROP_CACHE_DIR must be a folder that only you use, but others use {folder}: name a folder below it"
        )
    if mode & 0o022 and state.st_uid == os.geteuid():
        # It was created under a umask such as 002.
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)
    check(str(folder), os.stat(folder))


def _find(installed: str, in_checkout: str) -> str:
    for folder in (_PACKAGE / installed, _CHECKOUT / in_checkout):
        if folder.is_dir():
            return str(folder)
    raise FileNotFoundError(
        f"{_PACKAGE} has no folder {installed!r}, and there is no {_CHECKOUT / in_checkout}: {_INCOMPLETE}"
    )
