"""The LLTM cell on a GPU: Cython with CUDA kernels of its own, against the ways that one has without."""

from dataclasses import asdict, dataclass

import torch

from interop.experiments import UnavailableError, building, parser, results
from interop.experiments.display import progress, say, table
from interop.experiments.environment import environment

from . import agreement, bandwidth, report, timing, ways


@dataclass(frozen=True)
class Settings:
    """What is measured. The small shapes are those of the PyTorch tutorial."""

    batch: int = 16
    features: int = 32
    state: int = 128
    large_batch: int = 4096
    large_state: int = 4096
    rounds: int = 40
    calls: int = 200
    seed: int = 0


QUICK = {"rounds": 3, "calls": 10}


def main(arguments: list[str]) -> None:
    """Run the experiment with the command line `arguments`."""
    command = parser(ways.NAME, __doc__)
    options = command.parse_args(arguments)
    if options.render:
        results.render(ways.NAME, report)
        return
    if not torch.cuda.is_available():
        raise UnavailableError(
            f"this experiment needs a CUDA device, and torch {torch.__version__} finds none; what its kernels compute "
            "is tested without one: pytest tests/cuda/test_cuda_kernels.py tests/cuda/test_cuda.py"
        )
    settings = Settings(**(QUICK if options.quick else {}))
    device = torch.device("cuda", torch.cuda.current_device())
    started = environment()
    building.build_once("lltm", "a minute or so")
    building.build_once(ways.NAME, "half a minute")
    result = started | {"gpu": ways.gpu(device), "flags": ways.FLAGS} | experiment(settings, device)
    table("microseconds", list(report.HEAD), report.rows(result))
    table("bytes moved, against a copy on the device", list(report.BANDWIDTH_HEAD), report.bandwidth_rows(result))
    say(report.agreement(result))
    results.keep(ways.NAME, result, report, record=options.record, machine=ways.slug(result["gpu"]["name"]))


def experiment(settings: Settings, device: torch.device) -> dict:
    """Everything in order; returns what goes into the JSON."""
    torch.manual_seed(settings.seed)
    shapes = settings.batch, settings.features, settings.state
    result = {"settings": asdict(settings), "agreement": agreement.check(device)}
    with progress("timing", settings.rounds) as shown:
        result["times"] = timing.measure(*shapes, settings.rounds, settings.calls, device, shown)
    with progress("bandwidth", len(bandwidth.DTYPES)) as shown:
        result["bandwidth"] = bandwidth.measure(
            settings.large_batch, settings.large_state, settings.rounds, device, shown
        )
    return result
