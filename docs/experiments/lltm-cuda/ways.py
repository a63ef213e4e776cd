"""The forms of the cell that run on a GPU, by the names that tables, plots and results call them."""

from types import ModuleType

import torch

from experiments import load
from experiments.harness import building

NAME = "lltm-cuda"
FLAGS = ["-O3"]
"""The flags of nvcc, as interop.build passes them."""

WAYS = ("Python", "torch.compile", "C++", "Cython", "Cython CUDA")


def module() -> ModuleType:
    """The module with the CUDA kernels, compiled and imported, together with the operators that it is for."""
    building.build("lltm")
    building.build(NAME)
    building.native("lltm", "cell_fused")  # defines them
    return building.native(NAME, "cell_cuda")


def same_cells(features: int, state: int, **options) -> dict:
    """A cell of each way, all with the same parameters."""
    module()
    cpu = load("lltm", "ways").same_cells(features, state, **options)
    return {way: cpu["Cython fused" if way == "Cython CUDA" else way] for way in WAYS}


def gpu(device: torch.device) -> dict:
    """The GPU, as it goes into a result."""
    properties = torch.cuda.get_device_properties(device)
    return {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "cuda": torch.version.cuda,
    }
