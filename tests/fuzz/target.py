"""``python target.py FOLDER TARGET ARGUMENTS...``: runs a target in this process, which libFuzzer ends. See run.py."""

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path


def of_entries(data: bytes) -> object:
    """An object whose __cuda_array_interface__ is made from the bytes, entry by entry."""

    class Carrier:
        pass

    def number() -> int:
        nonlocal data
        kind, data = data[:1] or b"\0", data[1:]
        if kind[0] < 200:
            return kind[0] % 8 - 2
        raw, data = data[:9].ljust(9, b"\0"), data[9:]
        return int.from_bytes(raw, "little", signed=True)

    def value(depth: int = 0) -> object:
        nonlocal data
        kind, data = (data[:1] or b"\0")[0] % 10, data[1:]
        if kind == 0:
            return None
        if kind == 1 and depth < 3:
            return [value(depth + 1) for _ in range(abs(number()) % 5)]
        if kind == 2:
            return number() % 2 == 0
        if kind == 3:
            text, data = data[:4], data[4:]
            return text.decode("latin-1")
        if kind in (4, 5) and depth < 3:
            return tuple(value(depth + 1) for _ in range(abs(number()) % 5))
        if kind == 6:
            return tuple(number() for _ in range(abs(number()) % 5))
        return number()

    entries = {"version": 3, "shape": (2, 3), "typestr": "<f4", "data": (4096, False), "strides": None}
    for name in ("shape", "strides", "typestr", "data", "version", "mask", "stream"):
        if number() % 2:
            entries[name] = value()
    carrier = Carrier()
    carrier.__cuda_array_interface__ = entries  # type: ignore[attr-defined]
    return carrier


def native(folder: str, target: str, arguments: list[str]) -> None:
    """Runs one of the targets in bridges.cpp."""
    import torch  # noqa: F401  # the module needs torch's libraries

    sys.path.insert(0, folder)
    import fuzz_bridges  # type: ignore[import-not-found]

    fuzz_bridges.run(target, arguments, of_entries)


def python(target: str, arguments: list[str]) -> None:
    """Runs a target in Python."""
    import atheris  # type: ignore[import-untyped]

    with atheris.instrument_imports(include=["interop", "elftools"]):
        attacked = {"elves": elves, "manifests": manifests}[target](Path(tempfile.mkdtemp()))
    atheris.Setup([target, *arguments], attacked)
    atheris.Fuzz()


def elves(folder: Path) -> Callable[[bytes], None]:
    """The doctor's reader of libraries. Every file must give findings."""
    from interop.doctor import elf
    from interop.doctor.module import examine_module

    numbers = itertools.count()

    def attack(data: bytes) -> None:
        number = next(numbers)
        if number % 1000 == 0:
            elf.read.cache_clear()  # keyed by path; not more often, to keep the system's libraries
        file = folder / f"module-{number}.so"
        file.write_bytes(data)
        assert examine_module(file, run=False)
        file.unlink()

    return attack


def manifests(folder: Path) -> Callable[[bytes], None]:
    """The reader of a cache's manifest. It accepts only sealed text, and can use all that it accepts."""
    os.environ["INTEROP_CACHE_DIR"] = str(folder / "cache")
    from interop import private
    from interop.jit import cache_folder, manifest

    build = cache_folder.root() / "modules" / "entry" / "build"
    private.make_folders(build)
    (build / "module.so").touch()
    manifest.write(build, "module.so", [__file__], time.time())
    path = build / manifest.NAME
    assert (found := manifest.find(build))
    assert found.is_current()

    def attack(data: bytes) -> None:
        for text in (data, private.seal("modules/entry", data)):  # hardly any input would get beyond the seal by itself
            path.write_bytes(text)
            try:
                found = manifest.read(build)
            except manifest.DamagedError:
                continue
            assert found
            assert found.module in found.made
            found.is_current()
            manifest.find(build)

    return attack


if __name__ == "__main__":
    where, which, *rest = sys.argv[1:]
    if which in ("elves", "manifests"):
        python(which, rest)
    else:
        native(where, which, rest)
