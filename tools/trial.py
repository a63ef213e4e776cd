"""Tries a release as its users install it: ``python tools/trial.py [TORCH]``; without TORCH, that of requirements/.

It builds sdist and wheel out of a clean clone of HEAD. Then it makes two environments, with nothing from this one, and
types the commands of README.md and docs/support.md in them. In one it installs torch alone, and the wheel. In the other
it installs torch and what the build needs, and the sdist without isolation. In both, the doctor runs, and a module of
Cython is compiled and called. At last it installs the sdist with isolation, which must end in one message, and must
fetch no torch.

All of it is in build/trial. The exit status is 1 if anything differs.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "trial"
DIST = FOLDER / "dist"
NEEDED = ["Cython>=3.1", "ninja", "numpy>=2", "pyyaml", "setuptools>=77"]
FROM_SDIST = ["--no-cache-dir", "--no-binary=torch-interop", f"--find-links={DIST}", "torch-interop"]
MESSAGE = "torch-interop is compiled against the torch of this environment, but torch is missing"
USE = """
import interop, torch
source = '''
cimport ATen as at
cimport torch
def twice(torch.Tensor x not None):
    return torch.wrap(at.mul(x.cdata, 2))
'''
assert interop.load_inline(source, name="twice").twice(torch.ones(3)).tolist() == [2, 2, 2]
print(interop.__version__, torch.__version__, interop.__file__)
"""


def run(*command: str | Path, fails: bool = False) -> str:
    """Run a command outside of the checkout, show its duration, and return what it prints."""
    words = [str(word) for word in command]
    shown = shlex.join("..." if word == USE else word.replace(f"{FOLDER}/", "") for word in words)
    print(f"$ {shown}", flush=True)
    hidden = ("INTEROP_", "PYTHON", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    ours = str(Path(sys.executable).parent)
    environment["PATH"] = os.pathsep.join(one for one in os.environ["PATH"].split(os.pathsep) if one != ours)
    begin = time.monotonic()
    done = subprocess.run(
        words,
        cwd=FOLDER,
        env=environment | {"INTEROP_CACHE_DIR": str(FOLDER / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(f"    {time.monotonic() - begin:.0f} s, exit status {done.returncode}", flush=True)
    if bool(done.returncode) != fails:
        sys.exit(f"{done.stdout}\ntrial: this must {'fail' if fails else 'succeed'}: {shown}")
    return done.stdout


def environment(name: str, *packages: str) -> Path:
    """The Python of a new environment with these packages from the index."""
    run(sys.executable, "-m", "venv", FOLDER / name)
    python = FOLDER / name / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", *packages)
    return python


def use(python: Path) -> None:
    """Run the doctor, and compile a module."""
    print("    " + run(python, "-P", "-m", "interop", "doctor").strip().replace("\n", "\n    "))
    said = run(python, "-P", "-c", USE)
    print(f"    {said.strip()}")
    if str(python.parent.parent) not in said:
        sys.exit(f"trial: another torch-interop was used than that of {python}")


def isolated(python: Path) -> None:
    """Install with build isolation, which must end in one message of ours before pip fetches a torch."""
    said = run(python, "-m", "pip", "install", "--force-reinstall", *FROM_SDIST, fails=True)
    lines = [line.strip() for line in said.splitlines() if MESSAGE in line]
    print("    " + said.strip().replace("\n", "\n    "))
    if len(lines) != 1 or "Traceback" in said:
        sys.exit("trial: an isolated build must end in one message")
    if re.search(r"(?:Collecting|Downloading) torch(?!-interop)", said):
        sys.exit("trial: an isolated build must fetch no torch")


def main(torch: str) -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    run("git", "clone", "--quiet", ROOT, FOLDER / "clone")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, FOLDER / "clone")
    print("    " + "\n    ".join(f"{path.name}, {path.stat().st_size / 1e6:.1f} MB" for path in sorted(DIST.iterdir())))

    if any(f"=={torch}" in line for line in (ROOT / "requirements" / "build.txt").read_text().splitlines()):
        # The wheel is for the torch that it was built with.
        python = environment("wheel", f"torch=={torch}")
        run(python, "-m", "pip", "install", "--quiet", "--no-build-isolation", f"--find-links={DIST}", "torch-interop")
        use(python)
    python = environment("sdist", f"torch=={torch}", *NEEDED)
    run(python, "-m", "pip", "install", "--quiet", "--no-build-isolation", *FROM_SDIST)
    use(python)
    isolated(python)
    print("trial: all as documented")
    return 0


if __name__ == "__main__":
    pinned = re.search(r"^torch==(.*)$", (ROOT / "requirements" / "build.txt").read_text(), re.MULTILINE)[1]
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else pinned))
