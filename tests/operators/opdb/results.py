"""The results of a comparison, for one operator or for many."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """The outcomes of the samples of one operator."""

    passed: int = 0
    failed: int = 0
    skipped: Counter = field(default_factory=Counter)
    calls: Counter = field(default_factory=Counter)  # by form, such as "method"
    direct: int = 0  # samples that are one call of ATen and nothing else


@dataclass
class Failure:
    operator: str
    dtype: str
    call: str
    problem: str
    arguments: str


@dataclass
class Run:
    """All results of a run."""

    operators: dict[str, Tally] = field(default_factory=dict)
    errors: dict[str, Tally] = field(default_factory=dict)
    messages: Counter = field(default_factory=Counter)
    compared: Counter = field(default_factory=Counter)
    aten: set[str] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)

    def __iadd__(self, other: "Run") -> "Run":
        self.operators |= other.operators
        self.errors |= other.errors
        self.messages += other.messages
        self.compared += other.compared
        self.aten |= other.aten
        self.failures += other.failures
        return self
