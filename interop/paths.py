"""The folders of the declarations, headers and sources that modules are built with, and the folder of the cache."""

import contextlib
import functools
import os
import stat
import tempfile
from collections.abc import Collection
from pathlib import Path

from interop.private import NotPrivateError, check, make_folders, note, open_folder

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent


def get_pxd_dir() -> str:
    """The folder with the ``.pxd`` declarations of ``torch``, ``ATen`` and ``c10``, for Cython's ``include_path``."""
    return _find("pxd", "pxd")


def get_include() -> str:
    """The folder with the C++ headers ``interop/*.h``, for the compiler's include path."""
    return _find("include", "csrc/include")


def get_stable_dir() -> str:
    """The folder whose ``pxd`` and ``include`` come before the two above, for modules for many releases of torch."""
    return _find("stable", "stable")


def get_source_dir() -> str:
    """The folder with the C++ sources that are compiled into other projects' modules."""
    return _find("csrc", "csrc")


def get_cmake_dir() -> str:
    """The folder with the CMake package, for ``interop_DIR``."""
    return _find("share/cmake/interop", "interop/share/cmake/interop")


def get_cache_dir() -> Path:
    """The folder for what is kept between runs: compiled modules, precompiled headers, what NVRTC made.

    It is ``$INTEROP_CACHE_DIR``, else ``torch-interop`` in ``$XDG_CACHE_HOME`` or ``~/.cache``; for a user without a
    home, or with one in which others can write, a folder of this user's where temporary files lie.
    """
    own = os.environ.get("INTEROP_CACHE_DIR")
    if own:
        return Path(own).absolute()
    # The specification of these folders says that a relative one is to be ignored.
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base) and os.environ.get("HOME") != "":  # of which Python would make /.cache
        base = os.path.expanduser("~/.cache")
    return Path(base, "torch-interop") if os.path.isabs(base) and _is_private(base) else _temporary()


@functools.cache
def _is_private(base: str) -> bool:
    """Whether nobody else can put a folder in the place of one that is made there; else that is noted.

    In containers, homes of other users and of groups are common, and nobody there has chosen them.
    """
    for folder in (Path(base), *Path(base).parents):
        try:
            with open_folder(folder):
                return True
        except NotPrivateError as error:
            note(f"torch-interop keeps what it compiles in {_temporary()}, and not in {base}: {error}")
            return False
        except FileNotFoundError:
            continue  # it will be made, for us alone
        except OSError:
            break  # whoever uses it says what is wrong
    return True


def _temporary() -> Path:
    return Path(tempfile.gettempdir(), f"torch-interop-{os.getuid()}")


def make_cache_dir() -> Path:
    """The same folder, made if it was not there; it holds code that will be run, so nobody else may write to it.

    Where that is not so and cannot be changed, a `NotPrivateError` says what to do.
    """
    folder = get_cache_dir()
    make_folders(folder)
    with open_folder(folder.parent) as parent:  # from here on nobody else can put another in the folder's place
        state = os.stat(folder.name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISLNK(state.st_mode):
        check(str(folder), state)
        if folder == _temporary():
            raise NotPrivateError(
                f"the cache {folder} is a link to {os.readlink(folder)}, and no folder; remove it, or name a folder of "
                "your own in the environment variable INTEROP_CACHE_DIR"
            )
    keep_private(folder, {"jit", "nvrtc"})
    return folder


def keep_private(folder: Path, names: Collection[str] | None = None) -> None:
    """Take from others the right to write to a folder of ours; `NotPrivateError` if that is impossible.

    With `names`, one that holds anything else is not ours alone, and stays as it is.
    """
    state = os.stat(folder)
    mode = stat.S_IMODE(state.st_mode)
    if mode & stat.S_ISVTX or (mode & 0o022 and names is not None and not set(os.listdir(folder)) <= {*names}):
        raise NotPrivateError(
            f"INTEROP_CACHE_DIR must be a folder for one user alone, and others use {folder}: name a folder below it"
        )
    if mode & 0o022 and state.st_uid == os.geteuid():
        # One that was made under a umask such as 002.
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)
    check(str(folder), os.stat(folder))


def _find(installed: str, in_checkout: str) -> str:
    for folder in (_PACKAGE / installed, _CHECKOUT / in_checkout):
        if folder.is_dir():
            return str(folder)
    raise FileNotFoundError(
        f"{_PACKAGE} has no folder {installed!r}, and there is no {_CHECKOUT / in_checkout}: the installation is "
        "incomplete. Reinstall it, in its checkout: pip install --no-build-isolation --force-reinstall --no-deps ."
    )
