"""Folders and files of code that will run: no other user may own them or be able to write to them.

The functions follow a path by descriptors from the root of the file system, and check each folder on it. So no other
user can replace a folder after its check.
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
"""The notes to show, and whether each was shown."""


class NotPrivateError(Error, PermissionError):
    """Another user owns a part of a path, or can write to it."""


class WritableError(NotPrivateError):
    """The folder or file is ours, and others can write to it."""


@contextlib.contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """A descriptor of a folder that no other user can write to or replace.

    Links are followed if they are ours or root's. Raise `NotPrivateError` if another user could write to the folder or
    replace it, and OSError if there is no folder.
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

    Raise `NotPrivateError` if it belongs to another user or others can write to it, and OSError if there is no file,
    or it is not a regular file but a link, for example.
    """
    # O_NONBLOCK, because opening a pipe would wait for a writer.
    try:
        handle = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        check(str(path), state)
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def is_locked(path: str | os.PathLike[str]) -> bool:
    """Whether the owner of what is at `path`, or of the folder that hides it, is this user, who could open it again."""
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except PermissionError:
        return is_locked(os.path.dirname(path))
    except OSError:
        return False


def is_damage(error: OSError) -> bool:
    """Whether a file of ours was replaced, perhaps by another user.

    Other errors can be temporary, such as those of a remote disk.
    """
    codes = (errno.ELOOP, errno.ENXIO, errno.EINVAL, errno.EISDIR, errno.ENOTDIR)
    return isinstance(error, WritableError) or error.errno in codes


def seal(name: str, text: bytes) -> bytes:
    """Put a hash in front of `text`, which begins with a JSON object, so that `unseal` recognises it.

    The hash includes the `name` of the text's owner, so that the text is not accepted under another name.
    """
    value = hashlib.sha256(os.fsencode(name) + b"\n" + text[1:]).hexdigest()
    return b'{"sha256": "%s", ' % value.encode() + text[1:]


def unseal(name: str, data: bytes) -> bytes | None:
    """The text that `seal` got under that name; None if `data` is anything else."""
    text = b"{" + data[len(seal("", b"")) :]
    return text if data == seal(name, text) else None


def digest(file: BufferedReader) -> str:
    """A hash of a file's content."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: str, state: os.stat_result, *, sticky: bool = True) -> None:
    """Raise `NotPrivateError` if the file or folder with this state is another user's, or others can write to it.

    In a folder such as /tmp, users can remove only their own files. That is enough above the cache. With `sticky`
    false, such a folder is rejected too, because others can put files there.
    """
    mode, us = stat.S_IMODE(state.st_mode), os.geteuid()
    risk = f"who could put modules there that would run with your rights, and you are {_user(us)}"
    advice = "name a folder of your own elsewhere in the environment variable INTEROP_CACHE_DIR"
    # In another user's container, which does not map root's id, the root of the file system is still root's. The
    # owners of other folders are unknown, because all unmapped users look the same there.
    if state.st_uid not in (0, us) and path != "/":
        raise NotPrivateError(f"{path} belongs to {_user(state.st_uid)}, {risk}; {advice}")
    if stat.S_ISLNK(state.st_mode) or (sticky and stat.S_ISDIR(state.st_mode) and mode & stat.S_ISVTX):
        return
    if mode & 0o002 or (mode & 0o020 and (_has_list(path) or not _is_only_ours(state.st_gid, us))):
        text = f"{path} can be written to by others (its mode is {mode:o}), {risk}; "
        if state.st_uid == us:
            raise WritableError(f"{text}run chmod go-w {shlex.quote(path)}, or {advice}")
        raise NotPrivateError(text + advice)


@functools.cache
def _is_only_ours(group: int, us: int) -> bool:
    """Whether we are the only user of a group. Many systems make such a group for each user.

    Root's group does not count, because processes with arbitrary user ids, as in containers, are often in it.
    """
    with contextlib.suppress(KeyError):
        name, found = pwd.getpwuid(us).pw_name, grp.getgrgid(group)
        users = {name, *found.gr_mem, *(one.pw_name for one in pwd.getpwall() if one.pw_gid == group)}
        return group != 0 and found.gr_name == name and users == {name} and pwd.getpwuid(us).pw_gid == group
    return False


def _has_list(path: str) -> bool:
    """Whether there is an access control list; the group bits then stand for the list."""
    try:
        os.getxattr(path, "system.posix_acl_access")
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.ENOTSUP)
    return True


def make_folders(path: Path) -> None:
    """Make a folder and its missing parents, for their owner only, whatever the umask is."""
    for folder in (*reversed(path.parents), path):
        with contextlib.suppress(FileExistsError):
            if not folder.is_dir():
                folder.mkdir(mode=0o700)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def remove(path: Path) -> None:
    """Remove a file, or a folder with its content, as far as possible."""
    with contextlib.suppress(OSError):
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        _open_to_us(str(path))
        shutil.rmtree(path, ignore_errors=True)


def _open_to_us(path: str) -> None:
    """Let us read and change a folder of ours and those below, whatever modes they have. No link is followed."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if os.fstat(handle).st_uid == os.geteuid():
                folder = f"/proc/self/fd/{handle}"  # such a descriptor cannot be used for it directly
                os.chmod(folder, 0o700)
                for name in os.listdir(folder):
                    _open_to_us(os.path.join(folder, name))
        finally:
            os.close(handle)


def note(text: str) -> None:
    """Let `warn` show a note, once per process."""
    _notes.setdefault(text, False)


def warn() -> None:
    """Show all notes in one warning.

    Call this last, because a filter may turn the warning into an error, which must leave nothing half done.
    """
    texts = [text for text, said in list(_notes.items()) if not said]
    _notes.update(dict.fromkeys(texts, True))
    if texts:
        warnings.warn("\n".join(texts), stacklevel=2)


def damaged(path: Path) -> str:
    """The note for damaged content at `path`."""
    return (
        f"torch-interop has rebuilt {path}: its content was damaged, or changed by something other than torch-interop"
    )


def _user(number: int) -> str:
    """The name of a user, for messages."""
    if number == 0:
        return "root"
    with contextlib.suppress(KeyError):
        return f"{pwd.getpwuid(number).pw_name} (user {number})"
    return f"user {number}"
