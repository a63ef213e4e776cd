"""Read the parts of ELF shared libraries that the loader uses.

Files may be damaged. Whatever their content, the result is a `Library` or a `NotALibraryError`. pyelftools decodes the
tables and trusts every count and offset in them, so it reads through a `_Reader`, which has a limit.
"""

import functools
import io
import os
import re
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.sections import Section, StringTableSection

from interop.errors import Error

__all__ = ["DamagedLibraryError", "Library", "NotALibraryError", "read"]

_KINDS = {"ET_REL": "an object file, which is not linked yet", "ET_CORE": "a core file, which a crash left behind"}
_PIE = 0x08000000
_GLOBAL, _WEAK, _UNIQUE = 1, 2, 10
_VERSION_WEAK = 2  # VER_FLG_WEAK of <elf.h>

_SectionType = TypeVar("_SectionType", bound=Section)

_TABLES_LIMIT = 4 << 20
"""Maximum number of bytes that pyelftools reads from one file, many times the size of a real library's tables."""
_TABLES_END = f"its tables are larger than {_TABLES_LIMIT} bytes"
_NAMES_LIMIT = 16
"""Maximum total size of symbol names, in multiples of the string table's size. Names with a common suffix overlap."""
_SECTION_LIMIT = 128 << 20
"""Maximum number of bytes read from a section, many times the size in a real library."""
_COMMENTS_LIMIT = 64 << 10
_COUNT_LIMIT = 1000
"""Maximum number of libraries that a library links to, and of folders in its search path."""


class NotALibraryError(Error):
    """A file that is not an ELF shared library. The message continues a sentence that begins with its name."""


class DamagedLibraryError(NotALibraryError):
    """A damaged or truncated library."""


@dataclass(frozen=True, eq=False)
class Library:
    """A shared library, or a program that is linked to some."""

    path: Path
    machine: str  # such as x86-64
    bits: int
    is_program: bool
    soname: str | None
    needed: tuple[str, ...]  # the libraries that it is linked to, by name
    search: tuple[str, ...]  # the folders of its RPATH or RUNPATH, unchanged; an empty one is the current folder
    # The loader searches a RUNPATH only for direct dependencies, and an RPATH for their dependencies too.
    has_runpath: bool
    defined: frozenset[str]  # the functions and variables that it exports, mangled
    undefined: frozenset[str]  # the symbols that others must define, except weak ones
    # The symbol versions that it needs, such as GLIBC_2.38, by library. Without weak ones, which a library may lack.
    versions: dict[str, tuple[str, ...]]
    offered_versions: frozenset[str]  # the symbol versions that it defines
    compilers: tuple[str, ...]  # of its object files, as named in .comment
    _constants: tuple[int, int]  # the offset and size of .rodata

    @property
    def folders(self) -> list[Path]:
        """The folders of `search`."""
        return [self.expanded(folder) for folder in self.search]

    @property
    def entry_points(self) -> tuple[str, ...]:
        """The names that it can be imported as: the part after ``PyInit_``."""
        return tuple(sorted(name.removeprefix("PyInit_") for name in self.defined if name.startswith("PyInit_")))

    def expanded(self, path: str) -> Path:
        """A path that the library names, with the library's own folder in place of $ORIGIN, and $LIB and $PLATFORM."""

        def value(found: re.Match[str]) -> str:
            token = found[1] or found[2]
            return str(self.path.absolute().parent) if token == "ORIGIN" else _tokens().get(token, found[0])

        return Path(_TOKEN.sub(value, path))

    def constant(self, pattern: bytes) -> str | None:
        """The group in the first match of `pattern` in .rodata."""
        start, size = self._constants
        with open(self.path, "rb") as file:
            file.seek(start)
            found = re.search(pattern, file.read(min(size, _SECTION_LIMIT)))
        return os.fsdecode(found[1]) if found else None


_TOKEN = re.compile(r"\$(?:(ORIGIN|LIB|PLATFORM)(?!\w)|\{(ORIGIN|LIB|PLATFORM)\})", re.ASCII)


@functools.cache
def _tokens() -> dict[str, str]:
    """The values of $LIB and $PLATFORM. They depend on the system and the processor, so the loader must say them.

    It prints the folders that it searches for the libraries of this program, and does not run the program.
    """
    ask = {
        "LD_TRACE_LOADED_OBJECTS": "1",
        "LD_DEBUG": "libs",
        "LD_LIBRARY_PATH": "/LIB=${LIB}/=:/PLATFORM=${PLATFORM}/=",
    }
    program = os.path.realpath("/proc/self/exe")
    printed = subprocess.run([program], env=ask, stdin=subprocess.DEVNULL, capture_output=True).stderr
    return dict(re.findall(r"/(LIB|PLATFORM)=(.*?)/=", os.fsdecode(printed)))


@functools.cache
def read(path: Path) -> Library:
    """The library in the file `path`; NotALibraryError if it is not one."""
    # Not mapped into memory, because it would look like a loaded library of this process.
    with _Reader(path) as file:
        try:
            return _File(file).library(path)
        except (ELFError, struct.error) as error:
            raise DamagedLibraryError(f"is damaged ({error})") from error


class _Reader(io.BufferedReader):
    """A file that pyelftools cannot read beyond its end, nor more than `_TABLES_LIMIT` of."""

    def __init__(self, path: Path):
        super().__init__(io.FileIO(path))
        self.size, self.left = os.fstat(self.fileno()).st_size, _TABLES_LIMIT

    def seek(self, position: int, whence: int = os.SEEK_SET, /) -> int:
        if position > self.size:
            raise DamagedLibraryError(
                f"is cut short, or damaged: it refers to byte {position}, but ends at {self.size}"
            )
        return super().seek(position, whence)

    def read(self, size: int | None = -1, /) -> bytes:
        # Holes count too: a sparse file is small and looks large.
        self.left -= self.size if size is None or size < 0 else size
        if self.left < 0:
            raise DamagedLibraryError(f"is damaged: {_TABLES_END}")
        return super().read(size)

    def section(self, section: Section | None) -> bytes:
        """The content of a section, which `_File` has found to be within the file."""
        if section is None:
            return b""
        if section["sh_size"] > _SECTION_LIMIT:
            raise DamagedLibraryError(f"is damaged: {section.name} is larger than {_SECTION_LIMIT} bytes")
        self.seek(section["sh_offset"])
        return super().read(section["sh_size"])


class _Strings:
    """The string table of a section. Each string can be as long as the table, so their total size is limited.

    Names come from here, because pyelftools alters names that are not valid UTF-8.
    """

    def __init__(self, data: bytes, limit: int, what: str):
        self.data, self.left, self.what = data, limit, what

    def at(self, place: int) -> str:
        end = self.data.find(b"\0", place)
        if end < 0:
            raise DamagedLibraryError("is damaged: a name is outside its table")
        self.left -= end - place
        if self.left < 0:
            raise DamagedLibraryError(f"is damaged: {self.what}")
        return os.fsdecode(self.data[place:end])


class _File:
    def __init__(self, file: _Reader):
        self.file = file
        head = file.read(64)
        if head[:4] != b"\x7fELF":
            raise NotALibraryError("is not an ELF file" if head else "is not an ELF file: it is empty")
        if len(head) < 64:
            raise DamagedLibraryError(f"is cut short: it ends after {file.size} bytes")
        self.elf = ELFFile(file)
        kind = self.elf["e_type"]
        if kind in _KINDS:
            raise NotALibraryError(f"is {_KINDS[kind]}")
        if kind not in ("ET_EXEC", "ET_DYN"):
            raise DamagedLibraryError(f"is damaged: its header has the type {kind}, but that of a library is ET_DYN")
        self._require("its section table", self.elf["e_shoff"], self.elf.num_sections() * self.elf["e_shentsize"])
        self.sections = list(self.elf.iter_sections())
        for section in self.sections:
            if section["sh_type"] != "SHT_NOBITS":
                self._require("a section", section["sh_offset"], section["sh_size"])

    def library(self, path: Path) -> Library:
        dynamic = self._of_type(DynamicSection)
        symbols = next((one for one in self.sections if one["sh_type"] == "SHT_DYNSYM"), None)
        if dynamic is None or symbols is None:
            raise NotALibraryError("is an ELF file without .dynamic and .dynsym, so not a shared library")
        strings = self._strings(dynamic)
        tags: dict[str, list[int]] = {}
        for tag in dynamic.iter_tags():
            tags.setdefault(tag["d_tag"], []).append(tag["d_val"])
        needed, soname, rpath, runpath = (
            [strings.at(place) for place in tags.get(f"DT_{name}", ())]
            for name in ("NEEDED", "SONAME", "RPATH", "RUNPATH")
        )
        # The loader ignores RPATH if there is a RUNPATH.
        search = [one for text in runpath or rpath if text for one in text.split(":")]
        for what, found in (("libraries", needed), ("folders", search)):
            if len(found) > _COUNT_LIMIT:
                raise DamagedLibraryError(f"is damaged: it names more than {_COUNT_LIMIT} {what}")
        defined, undefined = self._symbols(symbols)
        constants = self._named(".rodata")
        comments = self.file.section(self._named(".comment"))[:_COMMENTS_LIMIT].split(b"\0")
        return Library(
            path=path,
            machine=self._machine(),
            bits=self.elf.elfclass,
            is_program=self.elf["e_type"] == "ET_EXEC" or any(flags & _PIE for flags in tags.get("DT_FLAGS_1", ())),
            soname=next(iter(soname), None),
            needed=tuple(needed),
            search=tuple(search),
            has_runpath=bool(runpath),
            defined=defined,
            undefined=undefined,
            versions=self._needed_versions(),
            offered_versions=self._offered_versions(),
            compilers=tuple(dict.fromkeys(os.fsdecode(text) for text in comments if text)),
            _constants=(constants["sh_offset"], constants["sh_size"]) if constants else (0, 0),
        )

    def _machine(self) -> str:
        name: str = self.elf.get_machine_arch()
        return {"x64": "x86-64", "<unknown>": f"machine number {self.elf['e_machine']}"}.get(name, name)

    def _require(self, what: str, start: int, size: int) -> None:
        if start + size > self.file.size:
            raise DamagedLibraryError(
                f"is cut short, or damaged: {what} ends at byte {start + size}, but the file at {self.file.size}"
            )

    def _of_type(self, kind: type[_SectionType]) -> _SectionType | None:
        return next((one for one in self.sections if isinstance(one, kind)), None)

    def _named(self, name: str) -> Section | None:
        return next((one for one in self.sections if one.name == name and one["sh_type"] != "SHT_NOBITS"), None)

    def _strings(self, section: Section, of_symbols: bool = False) -> _Strings:
        link = section["sh_link"]
        table = self.sections[link] if link < len(self.sections) else None
        if not isinstance(table, StringTableSection):
            raise DamagedLibraryError(f"is damaged: {section.name} has no string table")
        data = self.file.section(table)
        if of_symbols:
            limit = min(_NAMES_LIMIT * len(data), _SECTION_LIMIT)
            return _Strings(data, limit, f"its symbol names are more than {_NAMES_LIMIT} times as long as their table")
        return _Strings(data, _TABLES_LIMIT, _TABLES_END)

    def _symbols(self, section: Section) -> tuple[frozenset[str], frozenset[str]]:
        defined: set[str] = set()
        undefined: set[str] = set()
        strings = self._strings(section, of_symbols=True)
        wide = self.elf.elfclass == 64
        # All at once: for torch's libraries, pyelftools takes as long to read symbols one by one as all the rest takes.
        layout = struct.Struct(("<" if self.elf.little_endian else ">") + ("IBBHQQ" if wide else "IIIBBH"))
        for entry in layout.iter_unpack(self.file.section(section)):
            name, info, index = (entry[0], entry[1], entry[3]) if wide else (entry[0], entry[3], entry[5])
            if index and info >> 4 in (_GLOBAL, _WEAK, _UNIQUE):
                found = defined
            elif not index and info >> 4 == _GLOBAL:
                found = undefined
            else:
                continue
            found.add(strings.at(name))
        return frozenset(defined - {""}), frozenset(undefined - {""})

    def _needed_versions(self) -> dict[str, tuple[str, ...]]:
        section = self._of_type(GNUVerNeedSection)
        if section is None:
            return {}
        strings = self._strings(section)
        return {
            strings.at(library["vn_file"]): tuple(
                strings.at(version["vna_name"]) for version in versions if not version["vna_flags"] & _VERSION_WEAK
            )
            for library, versions in section.iter_versions()
        }

    def _offered_versions(self) -> frozenset[str]:
        section = self._of_type(GNUVerDefSection)
        if section is None:
            return frozenset()
        strings = self._strings(section)
        # The first name of each definition is its own; the others are those of its predecessors.
        return frozenset(strings.at(next(names)["vda_name"]) for _, names in section.iter_versions())
