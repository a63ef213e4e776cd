"""Reads shared libraries in the ELF format, as far as the loader looks at them.

Files may be damaged: whatever stands in them, what comes out is a `Library` or a `NotALibraryError`. Every place in the
file that a number in it leads to is compared with the file's size before it is read.
"""

import functools
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from interop.errors import Error

__all__ = ["DamagedError", "Library", "NotALibraryError", "read"]

# By number, from here on those of the ELF specification and of elf.h.
_MACHINES = {
    3: "x86",
    8: "MIPS",
    20: "PowerPC",
    21: "PowerPC64",
    22: "s390",
    40: "ARM",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    258: "LoongArch",
}
_KINDS = {1: "an object file, which is not linked yet", 4: "what a crash has left (a core file)"}
_EXECUTABLE, _SHARED = 2, 3
_NO_BITS, _STRINGS = 8, 3
_NEEDED, _SONAME, _RPATH, _RUNPATH, _FLAGS_1 = 1, 14, 15, 29, 0x6FFFFFFB
_PIE = 0x08000000
_GLOBAL, _WEAK, _UNIQUE = 1, 2, 10


class NotALibraryError(Error):
    """A file that is no shared library in the ELF format; the message goes on after its name."""


class DamagedError(NotALibraryError):
    """A file that was one."""


@dataclass(frozen=True, eq=False)
class Library:
    """A shared library, or a program that is linked to some.

    Attributes
    ----------
    path
        The file.
    machine, bits
        What it was compiled for, such as ``x86-64`` and 64.
    is_program
        Whether it is there to be started.
    needed
        The libraries that it is linked to, by name.
    search
        The folders of its RPATH or RUNPATH, as they stand there.
    has_runpath
        Whether they are those of a RUNPATH, in which only its own libraries are looked for; those of an RPATH hold for
        their libraries, too.
    defined
        The functions and variables that it has for others, mangled.
    undefined
        Those that others must define; not the weak ones.
    versions
        By library, the versions of its interface that are needed, such as ``GLIBC_2.38``.
    offered_versions
        The versions of its own interface.
    compilers
        The compilers of its parts, as they name themselves.
    """

    path: Path
    machine: str
    bits: int
    is_program: bool
    soname: str | None
    needed: tuple[str, ...]
    search: tuple[str, ...]
    has_runpath: bool
    defined: frozenset[str]
    undefined: frozenset[str]
    versions: dict[str, tuple[str, ...]]
    offered_versions: frozenset[str]
    compilers: tuple[str, ...]
    _constants: tuple[int, int]

    @property
    def folders(self) -> list[Path]:
        """The folders of `search`, with the library's own in place of $ORIGIN."""
        own = str(self.path.absolute().parent)
        return [Path(re.sub(r"\$(ORIGIN|\{ORIGIN\})", lambda _: own, folder)) for folder in self.search]

    @property
    def entry_points(self) -> tuple[str, ...]:
        """The names that it can be imported as: what stands behind ``PyInit_``."""
        return tuple(sorted(name.removeprefix("PyInit_") for name in self.defined if name.startswith("PyInit_")))

    def constants(self, pattern: bytes) -> list[str]:
        """The matches of a pattern in its constants."""
        start, size = self._constants
        with open(self.path, "rb") as file:
            file.seek(start)
            return [os.fsdecode(found) for found in re.findall(pattern, file.read(size))]


@functools.cache
def read(path: Path) -> Library:
    """The library in the file `path`; NotALibraryError if it is none."""
    # Not mapped into memory: among the libraries of this process it would look like one that is loaded.
    with open(path, "rb") as file:
        try:
            return _File(file).library(path)
        except struct.error as error:
            raise DamagedError(f"is damaged ({error})") from error


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    start: int
    size: int
    link: int
    info: int


class _File:
    def __init__(self, file: BinaryIO):
        self.file, self.size = file, os.fstat(file.fileno()).st_size
        head = file.read(64)
        if head[:4] != b"\x7fELF":
            raise NotALibraryError("is no ELF file" if head else "is no ELF file, but empty")
        if len(head) < 64:
            raise DamagedError(f"is cut short: it ends after {self.size} bytes")
        if head[4] not in (1, 2) or head[5] not in (1, 2):
            raise DamagedError("is damaged: its header says neither 32 nor 64 bits, or has no byte order")
        self.bits, self.order = (32, 64)[head[4] - 1], "<>"[head[5] - 1]
        self.word = "Q" if self.bits == 64 else "I"
        self.kind, machine, *_, sections, _, _, _, _, _, section_count, names = struct.unpack_from(
            f"{self.order}HHI3{self.word}I6H", head, 16
        )
        self.machine = _MACHINES.get(machine, f"the machine of number {machine}")
        if self.kind in _KINDS:
            raise NotALibraryError(f"is {_KINDS[self.kind]}")
        if self.kind not in (_EXECUTABLE, _SHARED):
            raise DamagedError(f"is damaged: its header says that it is of kind {self.kind}, and a library's is 3")
        self.sections = self._sections(sections, section_count, names)

    def library(self, path: Path) -> Library:
        dynamic, symbols = self._named(".dynamic"), self._named(".dynsym")
        if dynamic is None or symbols is None:
            raise NotALibraryError("is an ELF file without .dynamic and .dynsym, so no shared library")
        strings = self._strings(dynamic)
        tags: dict[int, list[int]] = {}
        for tag, value in self._entries(dynamic, f"2{self.word}"):
            tags.setdefault(tag, []).append(value)
            if tag == 0:
                break
        texts = {tag: [_text(strings, at) for at in tags.get(tag, ())] for tag in (_NEEDED, _SONAME, _RPATH, _RUNPATH)}
        defined, undefined = self._symbols(symbols)
        comment, constants = self._named(".comment"), self._named(".rodata")
        return Library(
            path=path,
            machine=self.machine,
            bits=self.bits,
            is_program=self.kind == _EXECUTABLE or any(flags & _PIE for flags in tags.get(_FLAGS_1, ())),
            soname=next(iter(texts[_SONAME]), None),
            needed=tuple(texts[_NEEDED]),
            # The loader does not look at RPATH where there is a RUNPATH.
            search=tuple(one for text in texts[_RUNPATH] or texts[_RPATH] for one in text.split(":") if one),
            has_runpath=bool(texts[_RUNPATH]),
            defined=defined,
            undefined=undefined,
            versions=self._needed_versions(),
            offered_versions=self._offered_versions(),
            compilers=tuple(dict.fromkeys(os.fsdecode(text) for text in self._bytes(comment).split(b"\0") if text)),
            _constants=(constants.start, constants.size) if constants else (0, 0),
        )

    def _require(self, what: str, start: int, size: int) -> None:
        if start + size > self.size:
            raise DamagedError(
                f"is cut short, or damaged: {what} ends at byte {start + size}, and the file at {self.size}"
            )

    def _read(self, start: int, size: int) -> bytes:
        self.file.seek(start)
        return self.file.read(size)

    def _sections(self, start: int, count: int, names: int) -> list[_Section]:
        layout = struct.Struct(f"{self.order}II4{self.word}II2{self.word}")
        self._require("its table of sections", start, layout.size * count)
        rows = list(layout.iter_unpack(self._read(start, layout.size * count)))
        for row in rows:
            if row[1] != _NO_BITS:
                self._require("a section", row[4], row[5])
        if not rows:
            return []
        if names >= count:
            raise DamagedError("is damaged: its sections have no names")
        table = self._read(rows[names][4], rows[names][5]) if rows[names][1] == _STRINGS else b""
        return [_Section(_text(table, row[0]) if table else "", row[1], *row[4:8]) for row in rows]

    def _named(self, name: str) -> _Section | None:
        return next((one for one in self.sections if one.name == name and one.kind != _NO_BITS), None)

    def _bytes(self, section: _Section | None) -> bytes:
        return self._read(section.start, section.size) if section else b""

    def _strings(self, section: _Section) -> bytes:
        """The table of strings that belongs to a section."""
        if section.link >= len(self.sections) or self.sections[section.link].kind != _STRINGS:
            raise DamagedError(f"is damaged: {section.name} has no table of strings")
        return self._bytes(self.sections[section.link])

    def _entries(self, section: _Section, layout: str) -> Iterator[tuple]:
        return struct.iter_unpack(self.order + layout, self._bytes(section))

    def _symbols(self, section: _Section) -> tuple[frozenset[str], frozenset[str]]:
        strings, defined, undefined = self._strings(section), set(), set()
        wide = self.bits == 64
        for entry in self._entries(section, "IBBHQQ" if wide else "IIIBBH"):
            name, info, index = (entry[0], entry[1], entry[3]) if wide else (entry[0], entry[3], entry[5])
            if index and info >> 4 in (_GLOBAL, _WEAK, _UNIQUE):
                defined.add(_text(strings, name))
            elif not index and info >> 4 == _GLOBAL:
                undefined.add(_text(strings, name))
        return frozenset(defined - {""}), frozenset(undefined - {""})

    def _needed_versions(self) -> dict[str, tuple[str, ...]]:
        section = self._named(".gnu.version_r")
        if section is None:
            return {}
        data, strings = self._bytes(section), self._strings(section)
        found = {}
        for at in self._chain(data, 0, section.info, 12):
            _, count, library, first, _ = struct.unpack_from(f"{self.order}2H3I", data, at)
            names = [
                struct.unpack_from(f"{self.order}I2H2I", data, one)[3]
                for one in self._chain(data, at + first, count, 12)
            ]
            found[_text(strings, library)] = tuple(_text(strings, name) for name in names)
        return found

    def _offered_versions(self) -> frozenset[str]:
        section = self._named(".gnu.version_d")
        if section is None:
            return frozenset()
        data, strings = self._bytes(section), self._strings(section)
        firsts = [
            at + struct.unpack_from(f"{self.order}4H3I", data, at)[5] for at in self._chain(data, 0, section.info, 16)
        ]
        return frozenset(_text(strings, struct.unpack_from(f"{self.order}2I", data, at)[0]) for at in firsts)

    def _chain(self, data: bytes, at: int, count: int, offset: int) -> Iterator[int]:
        """The places of `count` entries, each of which has, `offset` bytes on, how far it is to the next."""
        for _ in range(count):
            yield at
            (step,) = struct.unpack_from(f"{self.order}I", data, at + offset)
            if step == 0:  # the last
                return
            at += step


def _text(strings: bytes, at: int) -> str:
    """The string at a place in a table."""
    end = strings.find(b"\0", at)
    if end < 0:
        raise DamagedError("is damaged: a name lies outside of its table")
    return os.fsdecode(strings[at:end])
