"""Runs every linter over the files that git knows. `--fix` lets those that can write do so."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Where words are looked up. Results, pictures and the fuzzers' inputs are data.
SPELLED = ("*.md", "*.toml", "Makefile", "csrc", "docs", "interop", "pxd", "setup.py", "stable", "tests", "tools")


def files(*patterns: str) -> list[str]:
    """The files that match, tracked or new; those that git ignores are left out, and so what is generated."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


def commands(fix: bool) -> list[list[str]]:
    """One command for each linter, as they would be typed in the checkout."""
    python = [sys.executable, "-m"]
    cython, cxx = files("*.pyx", "*.pxd"), files("*.h", "*.cpp", "*.cu", "*.cuh")
    prose = [
        name for name in files(*SPELLED) if not name.endswith((".png", ".svg", ".json")) and "/corpus/" not in name
    ]
    return [
        [*python, "ruff", "check", *(["--fix"] if fix else []), "."],
        [*python, "ruff", "format", *([] if fix else ["--check"]), "."],
        [*python, "mypy"],
        [str(Path(sys.executable).with_name("cython-lint")), *cython],
        [str(Path(sys.executable).with_name("clang-format")), *(["-i"] if fix else ["--dry-run", "--Werror"]), *cxx],
        # It writes nothing with --fix: a word that it does not know may be a name.
        [*python, "codespell_lib", *prose],
    ]


def main() -> int:
    """Runs all of them even if one fails, so that one run shows everything."""
    # cython-lint starts pycodestyle by name.
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    failed = []
    for command in commands("--fix" in sys.argv[1:]):
        if subprocess.run(command, cwd=ROOT, env=environment).returncode:
            failed.append(" ".join(command[2:4]) if command[1] == "-m" else Path(command[0]).name)
    print(f"lint: {', '.join(failed)} failed" if failed else "lint: clean")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
