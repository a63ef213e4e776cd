"""What a port declares, so that one measure.py and one report.py serve all of them."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from experiments import FOLDER

__all__ = ["FLAGS", "NAME", "Operation", "Port", "floats_of", "load_ports", "results_of"]

NAME = "ports"
FLAGS = ["-O3", "-g0"]
"""What ours and the originals are compiled with. None of them is about a processor."""


@dataclass(frozen=True)
class Operation:
    """One operation of a port: its inputs, and the three ways to compute it.

    The results of `original`, `ours` and `reference` are a tensor or a tuple of tensors. They are equal within the
    tolerances of `torch.testing.assert_close`. An operation may differ only where its docstring says so, as with the
    index of one of several equal values.
    """

    name: str
    dtypes: tuple[torch.dtype, ...]
    sizes: tuple[str, ...]
    """Three labels, smallest first."""

    inputs: Callable[[str, torch.dtype], tuple]
    """The arguments for one of `sizes` and one of `dtypes`. The same call gives the same values."""

    original: Callable[..., object]
    """Calls the original. It imports the original when it is called, not before."""

    ours: Callable[..., object]
    reference: Callable[..., object]
    """The same in plain torch or Python: slow, and correct where the original is not installed."""

    backward: bool
    """Whether gradients are compared and timed too."""


@dataclass(frozen=True)
class Port:
    """One package whose C++ was ported."""

    name: str
    requirement: str
    """What pip installs, such as "torch_scatter==2.1.2"."""

    module: str
    """The import name of the original."""

    original_sources: tuple[str, ...]
    """Globs in the source distribution: the C++ for the CPU that was ported, whose lines are counted."""

    operations: tuple[Operation, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment variables that the build of the original needs beside those that all get."""

    repository: str = ""
    """Where the original's tests are, if its source distribution has none."""

    tests: tuple[str, ...] = ()
    """Globs in the source distribution, or in the repository: the tests of what was ported."""

    package: str = "."
    """The folder of the source distribution that the original's Python is imported from."""


def load_ports() -> dict[str, Port]:
    """The ports that there are, by the names of their folders."""
    names = sorted(path.parent.name for path in (FOLDER / NAME).glob("*/port.py"))
    return {name: importlib.import_module(f"experiments.{NAME}.{name}.port").PORT for name in names}


def results_of(result: object) -> tuple[Tensor, ...]:
    """The tensors of a result, which is a tensor or a sequence of tensors; other parts are left out."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return tuple(part for part in parts if isinstance(part, Tensor))


def floats_of(arguments: tuple) -> tuple[Tensor, ...]:
    """The arguments that can have a gradient."""
    return tuple(
        argument for argument in arguments if isinstance(argument, Tensor) and argument.dtype.is_floating_point
    )
