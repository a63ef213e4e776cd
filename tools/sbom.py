"""Lists the components of a wheel as a bill of materials in CycloneDX's JSON. setup.py puts it where PEP 770 says.

The package has no sources of other projects. It includes headers, whose inline functions and templates become part of
its binaries. ninja knows which headers the compiler read. Licences that must be reproduced come with their texts.
"""

import importlib.metadata
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TORCHS_OWN = {"ATen", "c10", "caffe2", "torch"}
"""The folders of torch's own headers. The others belong to bundled projects."""


def headers(build: Path) -> list[str]:
    """The files that the compiler read in the folder `build`, according to ninja."""
    # As torch's build does: another version of ninja would start a new log, and the next build compile everything.
    found = shutil.which("ninja")
    ninja = [found] if found else [sys.executable, "-m", "ninja"]
    done = subprocess.run([*ninja, "-C", build, "-t", "deps"], capture_output=True, text=True, check=True)
    paths = {line.strip() for line in done.stdout.splitlines() if line.startswith("    ")}
    return sorted(str((build / path).resolve()) for path in paths)


def bill(version: str, read: Iterable[str]) -> dict[str, Any]:
    """The bill for this package in `version`, whose objects were compiled from the files `read`."""
    torch = Path(str(importlib.metadata.distribution("torch").locate_file("torch/include")))
    bundled = {found[1] for path in read if (found := re.match(rf"{re.escape(str(torch.resolve()))}/([^/]+)/", path))}
    cpython = Path(sysconfig.get_path("stdlib"), "LICENSE.txt")
    components = [
        _of_package("torch", "BSD-3-Clause", "LICENSE"),
        *(_of_package("torch", None, f"third_party/{name}/LICENSE", name) for name in sorted(bundled - TORCHS_OWN)),
        _of_package("numpy", "BSD-3-Clause", "LICENSE.txt"),
        _of_package("Cython", "Apache-2.0", None),
        _component("CPython", platform.python_version(), "PSF-2.0", cpython.read_text() if cpython.exists() else None),
        # ninja's list does not include system headers.
        _component("libstdc++", None, "GPL-3.0-or-later WITH GCC-exception-3.1", None),
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component("torch-interop", version, "BSD-3-Clause", None)},
        "components": components,
    }


def _of_package(package: str, licence: str | None, file: str | None, bundled: str | None = None) -> dict[str, Any]:
    """The component of an installed package, or of the project `bundled` in it."""
    found = importlib.metadata.distribution(package)
    text = found.read_text(f"licenses/{file}") if file else None
    if package == "numpy" and text:  # then come those of libraries in its wheel, such as OpenBLAS: no header is theirs
        text = text.partition("\n----\n")[0].rstrip() + "\n"
    if bundled:
        return _component(bundled, None, licence, text) | {"description": f"as bundled in {package} {found.version}"}
    purl = f"pkg:pypi/{package.lower()}@{found.version.partition('+')[0]}"
    return _component(package, found.version, licence, text) | {"purl": purl}


def _component(name: str, version: str | None, licence: str | None, text: str | None) -> dict[str, Any]:
    component: dict[str, Any] = {"type": "library", "name": name}
    if version:
        component["version"] = version
    if licence and " WITH " in licence:
        component["licenses"] = [{"expression": licence}]
    elif licence or text:
        stated = {"id": licence} if licence else {"name": f"the licence of {name}"}
        component["licenses"] = [{"license": stated | ({"text": {"content": text}} if text else {})}]
    return component
