"""``python build_projects.py SITE FOLDER...``: builds the modules of the projects in the folders into the folder SITE.

pip would start several processes for each project. This program imports torch once and runs each setup.py in a fork, as
many at once as there are processors. It reuses what was compiled before and has not changed: a folder keeps its
objects, and ninja knows which headers each object includes.
"""

import os
import runpy
import sys
import traceback
from pathlib import Path

import interop.build  # noqa: F401  imported here once, for each setup.py


def main(site: str, folders: list[Path]) -> int:
    """Builds all projects, prints the log of each that fails, and returns the exit status."""
    waiting, running, status = list(folders), {}, 0
    while waiting or running:
        if waiting and len(running) < (os.cpu_count() or 1):
            folder = waiting.pop(0)
            running[start(folder, site)] = folder
            continue
        process, ended = os.wait()
        folder = running.pop(process)
        if ended:
            status = 1
            print(f"{folder} cannot be built:\n{(folder / 'build.log').read_text(errors='replace')}")
    return status


def start(folder: Path, site: str) -> int:
    """Runs the setup.py in `folder` in a new process, and returns the process ID."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        os.chdir(folder)
        log = os.open("build.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        # --force: setuptools checks only the sources, not the headers. Ninja still compiles only what changed.
        sys.argv = ["setup.py", "build_ext", "--force", "--build-temp", "objects", "--build-lib", site]
        runpy.run_path("setup.py", run_name="__main__")
        status = 0
    except BaseException:  # also SystemExit, which setuptools raises for an error in a source
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), [Path(folder).resolve() for folder in sys.argv[2:]]))
