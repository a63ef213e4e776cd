"""Folders and files of code that will be run: nobody else may own them, or be able to write to them.

A path is followed from the root of the file system by descriptors, and each folder on it is checked. So nobody else can
put something in the place of what was checked.
"""

import contextlib
import errno
import functools
import grp
import hashlib
import os
import pwd
import shlex
import shutil
import stat
import warnings
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from interop.errors import Error

__all__ = [
    *("NotPrivateError", "WritableError", "check", "damaged", "digest", "is_damage", "make_folders", "note"),
    *("open_file", "open_folder", "remove", "seal", "unseal", "warn"),
]

_MAX_LINKS = 40  # as in Linux

_notes: dict[str, bool] = {}
"""What there is to say, and whether it has been said."""


class NotPrivateError(Error, PermissionError):
    """Somebody else owns a part of a path, or can write to it."""


class WritableError(NotPrivateError):
    """It is ours, and others can write to it."""


@contextlib.contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """A descriptor of a folder that nobody else can write to, and in whose place nobody else can put another.

    Links are followed if they are ours or root's. `NotPrivateError` if somebody else could, OSError if there is none.
    """
    rest, at, links = [*reversed(path.absolute().parts)], "/", 0
    folder = os.open(at, os.O_PATH | os.O_CLOEXEC)
    try:
        while rest:
            part = rest.pop()
            whole = os.path.join(at, part)
            try:
                handle = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            except OSError as error:
                error.filename = whole
                raise
            try:
                state = os.fstat(handle)
                check(whole, state)
                if stat.S_ISLNK(state.st_mode) and links < _MAX_LINKS:
                    links += 1
                    rest += reversed(Path(os.readlink(part, dir_fd=folder)).parts)
                elif stat.S_ISDIR(state.st_mode):
                    folder, handle, at = handle, folder, whole
                else:
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), whole)
            finally:
                os.close(handle)
        yield folder
    finally:
        os.close(folder)


def open_file(folder: int, path: Path) -> BufferedReader:
    """The file at `path`, in a folder from `open_folder`, for reading.

    `NotPrivateError` if it is somebody else's, or others can write to it; OSError if there is none, or it is no regular
    file, but a link perhaps.
    """
    # Without waiting for somebody who writes to a pipe.
    try:
        handle = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        check(str(path), state)
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def is_damage(error: OSError) -> bool:
    """Whether something else lies in the place of a file of ours, perhaps put there by others.

    Other errors can pass, as one of a disk far away.
    """
    codes = (errno.ELOOP, errno.ENXIO, errno.EINVAL, errno.EISDIR, errno.ENOTDIR)
    return isinstance(error, WritableError) or error.errno in codes


def seal(name: str, text: bytes) -> bytes:
    """A text that begins with an object of JSON, with a hash of it in front, by which `unseal` knows it.

    The hash is also of the `name` of what it belongs to, so that it is not taken for another's.
    """
    value = hashlib.sha256(os.fsencode(name) + b"\n" + text[1:]).hexdigest()
    return b'{"sha256": "%s", ' % value.encode() + text[1:]


def unseal(name: str, data: bytes) -> bytes | None:
    """What was given to `seal` under that name; None if it was something else."""
    text = b"{" + data[len(seal("", b"")) :]
    return text if data == seal(name, text) else None


def digest(file: BufferedReader) -> str:
    """A hash of what stands in a file."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: str, state: os.stat_result) -> None:
    """Raise `NotPrivateError` if the file or folder of that state is somebody else's, or others can write to it."""
    mode, us = stat.S_IMODE(state.st_mode), os.geteuid()
    risk = f"who could put modules there that would run as yours, and you are {_user(us)}"
    advice = "name a folder of your own elsewhere in the environment variable INTEROP_CACHE_DIR"
    # Where root has no number, in a container of another user's, the root of the file system is still root's. Of other
    # folders nobody knows: all who have no number there look like one.
    if state.st_uid not in (0, us) and path != "/":
        raise NotPrivateError(f"{path} belongs to {_user(state.st_uid)}, {risk}; {advice}")
    if stat.S_ISLNK(state.st_mode) or (stat.S_ISDIR(state.st_mode) and mode & stat.S_ISVTX):
        return  # in /tmp others can take away what is theirs alone
    if mode & 0o002 or (mode & 0o020 and (_has_list(path) or not _is_only_ours(state.st_gid, us))):
        text = f"{path} can be written to by others (its mode is {mode:o}), {risk}; "
        if state.st_uid == us:
            raise WritableError(f"{text}run chmod go-w {shlex.quote(path)}, or {advice}")
        raise NotPrivateError(text + advice)


@functools.cache
def _is_only_ours(group: int, us: int) -> bool:
    """Whether a group has one user, as many systems make one for each: what that may write, nobody else may.

    Root's is not one: what runs under a number of its own, as in containers, is often in it.
    """
    with contextlib.suppress(KeyError):
        name, found = pwd.getpwuid(us).pw_name, grp.getgrgid(group)
        users = {name, *found.gr_mem, *(one.pw_name for one in pwd.getpwall() if one.pw_gid == group)}
        return group != 0 and found.gr_name == name and users == {name} and pwd.getpwuid(us).pw_gid == group
    return False


def _has_list(path: str) -> bool:
    """Whether there is a list of who may do what, for which the bits of the group stand then."""
    try:
        os.getxattr(path, "system.posix_acl_access")
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.ENOTSUP)
    return True


def make_folders(path: Path) -> None:
    """Make a folder, and those above it that there are not, for their owner alone whatever the umask is."""
    for folder in (*reversed(path.parents), path):
        with contextlib.suppress(FileExistsError):
            if not folder.is_dir():
                folder.mkdir(mode=0o700)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def remove(path: Path) -> None:
    """Remove a file, or a folder and all that is in it, as far as that is possible."""
    with contextlib.suppress(OSError):
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


def note(text: str) -> None:
    """Have `warn` say something, once in a process."""
    _notes.setdefault(text, False)


def warn() -> None:
    """Say what was noted, in one warning.

    This comes last: a warning can be an error, and nothing is to be left half done.
    """
    texts = [text for text, said in list(_notes.items()) if not said]
    _notes.update(dict.fromkeys(texts, True))
    if texts:
        warnings.warn("\n".join(texts), stacklevel=2)


def damaged(path: Path) -> str:
    """The text to note where what is kept at `path` is not used."""
    return f"torch-interop has made {path} anew: what lay there was damaged, or changed by others than torch-interop"


def _user(number: int) -> str:
    """The name of a user, for messages."""
    if number == 0:
        return "root"
    with contextlib.suppress(KeyError):
        return f"{pwd.getpwuid(number).pw_name} (user {number})"
    return f"user {number}"
