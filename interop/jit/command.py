"""``python -m interop cache``: what is kept on disk, and how to be rid of it."""

import shutil
from pathlib import Path

from interop.cli import CommandError, Parser
from interop.jit.cache import KINDS, entries, limit
from interop.paths import get_cache_dir

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Run ``python -m interop cache`` with `arguments`."""
    command = Parser(prog="python -m interop cache", description=__doc__.partition(": ")[2])
    group = command.add_mutually_exclusive_group()
    group.add_argument("--show", action="store_true", help="say how much is kept, and where; the default")
    group.add_argument("--clear", action="store_true", help="remove all that is not in use")
    options = command.parse_args(arguments)
    try:
        bound = limit()
    except ValueError as error:
        raise CommandError(str(error)) from error
    if options.clear:
        _clear()
    else:
        _show(bound)


def _show(bound: int) -> None:
    sizes: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for entry in entries():
        sizes[entry.kind].append(entry.size())
    total = sum(map(sum, sizes.values()))
    nvrtc = sum(path.stat().st_size for path in _nvrtc())
    print(f"{get_cache_dir()}: {_mebibytes(total + nvrtc)}")
    for kind, found in sizes.items():
        print(f"{_mebibytes(sum(found)):>12} {KINDS[kind]} ({len(found)})")
    print(f"{_mebibytes(nvrtc):>12} kernels compiled by NVRTC ({len(_nvrtc())})")
    print(
        f"Beyond {_mebibytes(bound)} what was used longest ago is removed, NVRTC's apart; INTEROP_CACHE_LIMIT sets "
        "the bound, INTEROP_CACHE_DIR the folder."
    )


def _clear() -> None:
    freed, in_use = 0, 0
    for entry in list(entries()):
        size = entry.size()
        if entry.remove():
            freed += size
        else:
            in_use += 1
    freed += sum(path.stat().st_size for path in _nvrtc())
    shutil.rmtree(get_cache_dir() / "nvrtc", ignore_errors=True)
    print(f"removed {_mebibytes(freed)}" + (f"; {in_use} entries are in use and stay" if in_use else ""))


def _nvrtc() -> list[Path]:
    return [path for path in (get_cache_dir() / "nvrtc").glob("*") if path.is_file()]


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
