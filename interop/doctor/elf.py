"""Reads shared libraries, as far as the loader looks at them; the format itself is pyelftools' business."""

import functools
import mmap
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

__all__ = ["Library", "NotALibraryError", "read"]

_TAGS = {"DT_NEEDED": "needed", "DT_RPATH": "rpath", "DT_RUNPATH": "runpath", "DT_SONAME": "soname"}


class NotALibraryError(Exception):
    """A file that is no shared library in the ELF format."""


@dataclass(frozen=True, eq=False)
class Library:
    """A shared library.

    Attributes
    ----------
    path
        The file.
    machine, bits
        What it was compiled for, such as ``EM_X86_64`` and 64.
    needed
        The libraries that it is linked to, by name.
    search
        The folders of its RPATH or RUNPATH, as they stand there.
    undefined
        The functions and variables that others must define, mangled; not the weak ones.
    versions
        By library, the versions of its interface that are needed, such as ``GLIBC_2.38``.
    """

    path: Path
    machine: str
    bits: int
    soname: str | None
    needed: tuple[str, ...]
    search: tuple[str, ...]
    undefined: frozenset[str]
    versions: dict[str, tuple[str, ...]]
    _elf: Any

    @property
    def folders(self) -> list[Path]:
        """The folders of `search`, with the library's own in place of $ORIGIN."""
        own = str(self.path.absolute().parent)
        return [Path(re.sub(r"\$(ORIGIN|\{ORIGIN\})", lambda _: own, folder)) for folder in self.search]

    def defines(self, symbol: str) -> bool:
        """Whether it has the function or variable, for others to use."""
        found = self._symbols.get_symbol(symbol) if self._symbols else None
        return found is not None and found["st_shndx"] != "SHN_UNDEF"

    @functools.cached_property
    def _symbols(self) -> Any:
        """The table by which the loader finds symbols. pyelftools would read it again each time it is asked."""
        return self._elf.get_section_by_name(".gnu.hash") or self._elf.get_section_by_name(".hash")

    @functools.cached_property
    def offered_versions(self) -> frozenset[str]:
        """The versions of its own interface."""
        section = self._elf.get_section_by_name(".gnu.version_d")
        return frozenset(next(names).name for _, names in section.iter_versions()) if section else frozenset()

    @functools.cached_property
    def entry_points(self) -> tuple[str, ...]:
        """The names that it can be imported as: what stands behind ``PyInit_``."""
        symbols = self._elf.get_section_by_name(".dynsym").iter_symbols()
        names = (symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF")
        return tuple(name.removeprefix("PyInit_") for name in names if name.startswith("PyInit_"))

    @functools.cached_property
    def compilers(self) -> tuple[str, ...]:
        """The compilers of its parts, as they name themselves."""
        section = self._elf.get_section_by_name(".comment")
        texts = section.data().split(b"\0") if section else ()
        return tuple(dict.fromkeys(text.decode(errors="replace") for text in texts if text))

    def constants(self, pattern: bytes) -> list[str]:
        """The matches of a pattern in its constants."""
        section = self._elf.get_section_by_name(".rodata")
        return [found.decode() for found in re.findall(pattern, section.data())] if section else []


@functools.cache
def read(path: Path) -> Library:
    """The library in the file `path`; NotALibraryError if it is none."""
    try:
        with open(path, "rb") as file:
            # Stays open as long as the object lives. Of a library with hundreds of MB only what is looked at is read.
            elf: Any = ELFFile(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))  # type: ignore[arg-type]
        dynamic, symbols = elf.get_section_by_name(".dynamic"), elf.get_section_by_name(".dynsym")
    except (ELFError, ValueError) as error:  # ValueError: an empty file
        raise NotALibraryError(f"is no ELF file ({error})") from error
    if dynamic is None or symbols is None:
        raise NotALibraryError("is an ELF file, but no shared library")
    tags: dict[str, list[str]] = {name: [] for name in _TAGS.values()}
    for tag in dynamic.iter_tags():
        if tag.entry.d_tag in _TAGS:
            name = _TAGS[tag.entry.d_tag]
            tags[name].append(getattr(tag, name))
    return Library(
        path=path,
        machine=elf["e_machine"],
        bits=elf.elfclass,
        soname=next(iter(tags["soname"]), None),
        needed=tuple(tags["needed"]),
        # The loader does not look at RPATH where there is a RUNPATH.
        search=tuple(folder for path in tags["runpath"] or tags["rpath"] for folder in path.split(":") if folder),
        undefined=frozenset(
            symbol.name
            for symbol in symbols.iter_symbols()
            if symbol.name and symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL"
        ),
        versions=_needed_versions(elf),
        _elf=elf,
    )


def _needed_versions(elf: Any) -> dict[str, tuple[str, ...]]:
    section = elf.get_section_by_name(".gnu.version_r")
    if section is None:
        return {}
    return {library.name: tuple(version.name for version in versions) for library, versions in section.iter_versions()}
