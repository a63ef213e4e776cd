"""Fuzzes the code that reads untrusted input, guided by coverage: `make fuzz`, or

python tests/fuzz/run.py [--seconds N] [TARGET...]

The importers of shared memory (formats, buffers, dlpack, cuda_arrays) are C++, built by clang with AddressSanitizer for
libFuzzer. The doctor's reader of libraries (elves) and the cache's reader (manifests) are Python, which atheris runs.
Each target starts from the inputs in corpus/TARGET. New inputs go to build/fuzz/TARGET. An input that ends a target
goes to build/fuzz/TARGET-crash-*, or to -timeout-* or -oom-*.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "fuzz"
NATIVE = ("formats", "buffers", "dlpack", "cuda_arrays")
PYTHON = ("elves", "manifests")


def find_clang() -> str:
    """The default clang++ or else the newest, with libFuzzer."""
    names = ["clang++", *(f"clang++-{major}" for major in range(30, 13, -1))]
    for path in filter(None, map(shutil.which, names)):
        if runtime(path, "fuzzer_no_main", "a").exists():
            return path
    sys.exit("run.py: no clang++ with libFuzzer; on Debian and Ubuntu: apt install clang libclang-rt-dev")


def runtime(clang: str, name: str, suffix: str) -> Path:
    """A runtime library of clang's."""
    file = f"libclang_rt.{name}-{os.uname().machine}.{suffix}"
    for spelling in (file, f"libclang_rt.{name}.{suffix}"):
        path = subprocess.run([clang, f"-print-file-name={spelling}"], capture_output=True, text=True, check=True)
        if Path(path.stdout.strip()).exists():
            return Path(path.stdout.strip())
    return Path(file)


def build(clang: str) -> Path:
    """The module with the native targets, built again if one of its sources is newer."""
    import numpy
    from torch.utils.cpp_extension import include_paths, library_paths

    module = BUILD / f"fuzz_bridges{sysconfig.get_config_var('EXT_SUFFIX')}"
    sources = [HERE / "bridges.cpp", *sorted((ROOT / "csrc" / "bridges").glob("*.cpp"))]
    newest = max(path.stat().st_mtime for path in [*sources, *(ROOT / "csrc").rglob("*.h")])
    if module.exists() and module.stat().st_mtime > newest:
        return module
    BUILD.mkdir(parents=True, exist_ok=True)
    folders = [ROOT / "csrc", ROOT / "csrc" / "include", *include_paths(), numpy.get_include()]
    folders.append(sysconfig.get_path("include"))
    print("building the native targets", flush=True)
    objects = []
    flags = ["-std=c++20", "-O1", "-g1", "-fPIC", "-fno-omit-frame-pointer", "-fsanitize=fuzzer-no-link,address", "-w"]
    waiting = []
    for source in sources:
        objects.append(BUILD / f"{source.stem}-{source.parent.name}.o")
        command = [clang, *flags, *(f"-I{folder}" for folder in folders), "-c", source, "-o", objects[-1]]
        waiting.append(subprocess.Popen(command))
        if len(waiting) >= (os.cpu_count() or 1) and waiting.pop(0).wait():
            sys.exit(1)
    if any(process.wait() for process in waiting):
        sys.exit(1)
    libraries = [*(f"-L{folder}" for folder in library_paths()), "-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python"]
    support = runtime(clang, "fuzzer_no_main", "a")
    # -Bsymbolic: AddressSanitizer comes first. It has functions with libFuzzer's names, which count no coverage.
    link = [
        clang,
        "-shared",
        "-fsanitize=address",
        "-shared-libasan",
        "-Wl,-Bsymbolic",
        *objects,
        support,
        "-lstdc++",
        *libraries,
    ]
    subprocess.run([*link, "-o", module], check=True)
    return module


def fuzz(target: str, seconds: int, clang: str | None) -> dict[str, object]:
    """Runs a target and returns its result."""
    found = BUILD / target
    found.mkdir(parents=True, exist_ok=True)
    arguments = [
        f"-max_total_time={seconds}",
        f"-artifact_prefix={BUILD}/{target}-",
        "-timeout=20",
        "-rss_limit_mb=4096",
    ]
    arguments += ["-print_final_stats=1", str(found), str(HERE / "corpus" / target)]
    environment = os.environ.copy()
    if clang is not None:
        environment["LD_PRELOAD"] = str(runtime(clang, "asan", "so"))
        environment["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1:handle_segv=1"
        environment["PYTHONMALLOC"] = "malloc"
    started = time.monotonic()
    log = BUILD / f"{target}.log"
    with log.open("w") as file:
        command = [sys.executable, HERE / "target.py", str(BUILD), target, *arguments]
        status = subprocess.run(command, env=environment, stdout=file, stderr=subprocess.STDOUT).returncode
    lines = log.read_text(errors="replace").splitlines()
    stats = {
        key: int(value)
        for key, _, value in (line.removeprefix("stat::").partition(":") for line in lines if line.startswith("stat::"))
    }
    coverage = [line for line in lines if "cov: " in line]
    return {
        "target": target,
        "status": status,
        "seconds": round(time.monotonic() - started),
        "runs": stats.get("number_of_executed_units", 0),
        "edges": int(coverage[-1].split("cov: ")[1].split()[0]) if coverage else 0,
        "log": str(log.relative_to(ROOT)),
    }


def main() -> int:
    """Runs the targets, and prints a line of JSON for each. Returns 1 if one of them failed or ran no input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NATIVE + PYTHON)}; all by default")
    options = parser.parse_args()
    targets = options.targets or [*NATIVE, *PYTHON]
    if unknown := set(targets) - {*NATIVE, *PYTHON}:
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    clang = find_clang() if set(targets) & set(NATIVE) else None
    if clang is not None:
        build(clang)
    status = 0
    for target in targets:
        result = fuzz(target, options.seconds, clang if target in NATIVE else None)
        print(json.dumps(result), flush=True)
        status |= result["status"] != 0 or not result["runs"]
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
