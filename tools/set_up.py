"""Sets up an environment with this package for `make`: ``set_up.py VENV REQUIREMENTS``.

It runs under the Python that the environment is for, without any packages. Each step prints a line with its approximate
duration. The output of the commands goes into a log. If a command fails, the program shows the end of the log.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / "build" / "set-up.log"
OLDEST = (3, 11)
SHOWN = 20
"""The number of lines of the log that a failure shows."""

# On two cores, with pip's cache filled.
HOW_LONG = {"demo.txt": "15 s", "dev.txt": "a minute"}


def main(venv: Path, requirements: Path) -> int:
    """Make `venv` with `requirements` and this package in it. Returns the exit status."""
    if sys.version_info < OLDEST:
        found, oldest = (".".join(map(str, version[:2])) for version in (sys.version_info, OLDEST))
        print(f"error: Python {oldest} or newer is needed, and this is {found}; name another: make PYTHON=python3.12")
        return 1
    if problem := missing():
        print(f"error: {problem}; on Debian and Ubuntu: apt install g++ python3-dev python3-venv")
        return 1
    python = str(venv / "bin" / "python")
    pip = [python, "-m", "pip", "--no-input", "--disable-pip-version-check", "install", "--progress-bar=off"]
    pip.append("--no-compile")  # most files of torch are never imported, and Python compiles those that are
    length = HOW_LONG.get(requirements.name, "some minutes")
    steps = [
        (f"packages of {requirements}: {length}, and longer if torch must be fetched", [*pip, "-r", str(requirements)]),
        ("compiling torch-interop: about 40 s", [*pip, "--no-build-isolation", "--no-deps", "--editable", "."]),
    ]
    if not Path(python).exists():
        steps.insert(0, (f"an environment in {venv}: some seconds", [sys.executable, "-m", "venv", str(venv)]))
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_bytes(b"")
    for number, (text, command) in enumerate(steps, 1):
        status = run(f"{number}/{len(steps)} {text}", command)
        if status:
            lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-SHOWN:]
            print("\n".join(lines))
            print(f"error: {' '.join(command)} failed with exit status {status} (all of it: {LOG})")
            return 1
    return 0


def missing() -> str | None:
    """What this machine lacks to compile, before anything is fetched. None if nothing."""
    compiler = shlex.split(os.environ.get("CXX") or "c++")[0]
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not shutil.which(compiler):
        return f"there is no C++ compiler: {compiler} is not on PATH, and CXX may name another"
    return None if header.exists() else f"the headers of this Python are missing: there is no {header}"


def run(text: str, command: list[str]) -> int:
    """Run `command`, and print `text` with its seconds. On a terminal, the line shows the seconds while it runs."""
    live = sys.stdout.isatty()
    begin = time.monotonic()
    print(text, end="" if live else "\n", flush=True)
    with LOG.open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        with process:
            while True:
                try:
                    status = process.wait(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    if live:
                        print(f"\r{text} ... {time.monotonic() - begin:.0f} s", end="", flush=True)
    said = f"{'done' if status == 0 else 'failed'} after {time.monotonic() - begin:.0f} s"
    print(f"\r{text} ... {said}" if live else f"    {said}", flush=True)
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
    except KeyboardInterrupt:
        sys.exit("interrupted")
