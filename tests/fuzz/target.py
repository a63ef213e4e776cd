"""``python target.py FOLDER TARGET ARGUMENTS...``: one target in this process, which libFuzzer ends. See run.py."""

import sys
import tempfile
from pathlib import Path


def of_entries(data: bytes) -> object:
    """An object with a __cuda_array_interface__ that the bytes make up, entry by entry."""

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
    """One of the targets in bridges.cpp."""
    import torch  # noqa: F401  # whose libraries the module needs

    sys.path.insert(0, folder)
    import fuzz_bridges  # type: ignore[import-not-found]

    fuzz_bridges.run(target, arguments, of_entries)


def python(target: str, arguments: list[str]) -> None:
    """The target in Python."""
    import atheris  # type: ignore[import-untyped]

    with atheris.instrument_imports(include=["interop.doctor", "elftools"]):
        from interop.doctor.module import examine_module

    folder = Path(tempfile.mkdtemp())

    def elves(data: bytes) -> None:
        """Of any file there are findings."""
        (folder / "module.so").write_bytes(data)
        assert examine_module(folder / "module.so", run=False)

    atheris.Setup([target, *arguments], elves)
    atheris.Fuzz()


if __name__ == "__main__":
    where, which, *rest = sys.argv[1:]
    if which == "elves":
        python(which, rest)
    else:
        native(where, which, rest)
