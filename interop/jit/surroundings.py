"""What some builds depend on beside files and the key: this machine's processor, and its CUDA."""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from interop.jit.recipe import states_of

__all__ = ["CPU", "CUDA", "current", "is_native", "of_flags"]

CPU, CUDA = "cpu", "cuda"

CUDA_VARIABLES = (
    *("CUDA_HOME", "CUDA_PATH", "INTEROP_CUDA", "TORCH_CUDA_ARCH_LIST"),
    *("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN"),
)
_CPU_LINES = ("vendor_id", "model name", "flags", "Features", "CPU implementer", "CPU part")


def current(names: Iterable[str]) -> dict[str, object]:
    """What the surroundings of these names are now; in the form in which JSON gives them back."""
    return {name: _STATES[name]() for name in names}


def is_native(flags: Iterable[str]) -> bool:
    """Whether a compiler makes with these flags what only this processor may run."""
    return any(flag.endswith("=native") for word in flags for flag in word.split(","))


def of_flags(flags: Iterable[str], *others: str) -> dict[str, object]:
    """The surroundings on which what is compiled with these flags depends, and `others`."""
    return current([*others, CPU] if is_native(flags) else others)


def _cpu() -> list[str]:
    """What Linux says of the first processor."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return []
    return [line for line in first.splitlines() if line.startswith(_CPU_LINES)]


def _cuda() -> list:
    """The variables, the nvcc, and the GPUs where it compiles for those that there are."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    nvcc = shutil.which(os.path.join(home, "bin", "nvcc") if home else "nvcc")
    named = os.environ.get("TORCH_CUDA_ARCH_LIST", "native")
    gpus = _gpus() if torch.version.cuda and named in ("", "native") else []
    return [[os.environ.get(name) for name in CUDA_VARIABLES], states_of([nvcc] if nvcc else []), gpus]


def _gpus() -> list:
    """Models, and which of them are seen; from files, since no child process could call CUDA after this one has."""
    models = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        models += [line.partition(":")[2].strip() for line in lines if line.startswith("Model")]
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    # Of equal ones it does not matter which.
    return [models, seen if len(set(models)) > 1 else seen in ("", "-1")]


_STATES: dict[str, Callable[[], object]] = {CPU: _cpu, CUDA: _cuda}
