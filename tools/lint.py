"""Runs every linter over the files that git knows. With `--fix`, the linters that can correct files do so."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The files whose spelling is checked. Results, pictures and the fuzzers' inputs are data.
SPELLED = ("*.md", "*.toml", "Makefile", "csrc", "docs", "interop", "pxd", "setup.py", "stable", "tests", "tools")


def files(*patterns: str) -> list[str]:
    """The files that match, tracked or new, without the files that git ignores, and so without generated files."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


def commands(fix: bool) -> list[list[str]]:
    """One command for each linter, as typed in the checkout."""
    python = [sys.executable, "-m"]
    cython, cxx = files("*.pyx", "*.pxd"), files("*.h", "*.cpp", "*.cu", "*.cuh")
    prose = [
        name for name in files(*SPELLED) if not name.endswith((".png", ".svg", ".json")) and "/corpus/" not in name
    ]
    written = [name for name in prose if not name.endswith((".jsonl", ".patch", ".txt"))]  # by hand
    return [
        [*python, "ruff", "check", *(["--fix"] if fix else []), "."],
        [*python, "ruff", "format", *([] if fix else ["--check"]), "."],
        [*python, "mypy"],
        [str(Path(sys.executable).with_name("cython-lint")), *cython],
        [str(Path(sys.executable).with_name("clang-format")), *(["-i"] if fix else ["--dry-run", "--Werror"]), *cxx],
        # Runs without a fix: an unknown word may be a name.
        [*python, "codespell_lib", *prose],
        [sys.executable, "tools/words.py", *written],
        [sys.executable, "tools/links.py", *files("*.md", "*.ipynb")],
    ]


def main() -> int:
    """Runs all linters even if one fails, so that one run shows every error."""
    # cython-lint starts pycodestyle by name.
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    failed = []
    for command in commands("--fix" in sys.argv[1:]):
        if subprocess.run(command, cwd=ROOT, env=environment).returncode:
            module = command[1] == "-m"
            failed.append(" ".join(command[2:4]) if module else " ".join(Path(name).name for name in command[:2]))
    print(f"lint: {', '.join(failed)} failed" if failed else "lint: clean")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
