"""What it costs to go from arrays and buffers to tensors and back, against torch and against the buffers of NumPy."""

from experiments.harness import calls
from experiments.harness.driver import Experiment

from . import measure

EXPERIMENT = Experiment(
    lambda settings, options: calls.measured(measure, settings, options.quick, "two minutes"),
    settings={"rounds": 40, "calls": 50_000},
    quick={"rounds": 5, "calls": 5_000},
    flags=measure.FLAGS,
    builds={measure.NAME: "a few seconds"},
)
