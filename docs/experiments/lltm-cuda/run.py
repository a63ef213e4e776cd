"""The LLTM cell on a GPU: Cython with CUDA kernels of its own, against the ways that one has without."""

import argparse

import torch

from experiments.harness.display import progress
from experiments.harness.driver import Experiment, UnavailableError

from . import agreement, bandwidth, timing, ways


def require() -> None:
    if not torch.cuda.is_available():
        raise UnavailableError(
            f"this experiment needs a CUDA device, and torch {torch.__version__} finds none; what its kernels compute "
            "is tested without one: pytest tests/cuda/test_cuda_kernels.py tests/cuda/test_cuda.py"
        )


def run(settings: dict, _: argparse.Namespace) -> dict:
    device = torch.device("cuda", torch.cuda.current_device())
    torch.manual_seed(settings["seed"])
    sizes, rounds = (settings[key] for key in ("batch", "features", "state")), settings["rounds"]
    result = {"gpu": ways.gpu(device), "agreement": agreement.check(device)}
    with progress("timing", rounds) as shown:
        result["times"] = timing.measure(*sizes, rounds, settings["calls"], device, shown)
    with progress("bandwidth", len(bandwidth.DTYPES)) as shown:
        sizes = settings["large_batch"], settings["large_state"]
        result["bandwidth"] = bandwidth.measure(*sizes, rounds, device, shown)
    return result


EXPERIMENT = Experiment(
    run,
    settings={
        "batch": 16,  # with features and state, of the PyTorch tutorial
        "features": 32,
        "state": 128,
        "large_batch": 4096,
        "large_state": 4096,
        "rounds": 40,
        "calls": 200,
        "seed": 0,
    },
    quick={"rounds": 3, "calls": 10},
    flags=ways.FLAGS,
    builds={"lltm": "a minute or so", ways.NAME: "half a minute"},
    require=require,
)
