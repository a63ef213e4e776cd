"""``python -m interop cache``: show what is cached on disk, or remove it."""

import json
import shutil
from pathlib import Path

from interop.cli import CommandError, Parser
from interop.paths import get_cache_dir
from interop.private import NotPrivateError

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Run ``python -m interop cache`` with `arguments`."""
    command = Parser(
        prog="python -m interop cache",
        description="Show what is cached on disk, or remove it.",
        examples={
            "python -m interop cache": "how much is cached, and where",
            "python -m interop cache --json": "the same, in bytes, for programs",
            "python -m interop cache --clear": "remove it; the next use compiles again",
        },
    )
    group = command.add_mutually_exclusive_group()
    group.add_argument("--show", action="store_true", help="show how much is cached, and where (the default)")
    group.add_argument("--clear", action="store_true", help="remove everything that is not in use")
    command.add_argument("--json", action="store_true", help="print JSON, with sizes in bytes")
    options = command.parse_args(arguments)
    from interop.jit.cache_folder import limit  # here, because it imports torch

    try:
        bound = limit()
    except ValueError as error:
        raise CommandError(str(error)) from error
    if options.clear:
        _clear(options.json)
    else:
        _show(bound, options.json)


def _show(bound: int, as_json: bool) -> None:
    from interop.jit.cache_folder import KINDS, entries

    sizes: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for entry in entries():
        sizes[entry.kind].append(entry.size())
    sizes["nvrtc"] = [path.stat().st_size for path in _nvrtc()]
    total = sum(map(sum, sizes.values()))
    if as_json:
        kinds = {kind: {"entries": len(found), "bytes": sum(found)} for kind, found in sizes.items()}
        print(json.dumps({"folder": str(get_cache_dir()), "limit": bound, "bytes": total, "kinds": kinds}, indent=1))
        return
    print(f"{get_cache_dir()}: {_mebibytes(total)}")
    for kind, title in (KINDS | {"nvrtc": "kernels compiled by NVRTC"}).items():
        print(f"{_mebibytes(sum(sizes[kind])):>12} {title} ({len(sizes[kind])})")
    print(
        f"Beyond {_mebibytes(bound)} the least recently used entries are removed, except NVRTC's. INTEROP_CACHE_LIMIT "
        "sets this limit, INTEROP_CACHE_DIR the folder."
    )


def _clear(as_json: bool) -> None:
    from interop.jit.cache_folder import close, entries, root

    if root().is_dir():
        try:
            close()
        except NotPrivateError as error:
            raise CommandError(str(error)) from error
    freed, in_use = 0, 0
    for entry in list(entries()):
        size = entry.size()
        if entry.remove():
            freed += size
        else:
            in_use += 1
    freed += sum(path.stat().st_size for path in _nvrtc())
    shutil.rmtree(get_cache_dir() / "nvrtc", ignore_errors=True)
    if as_json:
        print(json.dumps({"removed": freed, "in_use": in_use}, indent=1))
    else:
        print(f"removed {_mebibytes(freed)}" + (f"; {in_use} entries are in use and stay" if in_use else ""))


def _nvrtc() -> list[Path]:
    return [path for path in (get_cache_dir() / "nvrtc").glob("*") if path.is_file()]


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
