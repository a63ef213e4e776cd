"""Makes the report of a run and shows it as tables."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.testing._internal.common_methods_invocations import op_db

from opdb.modules import Modules
from opdb.results import Run, Tally
from opdb.samples import operator_name

LISTED = 60  # maximum number of failed shapes shown


def summary(run: Run, operators: list[Any], modules: Modules, seed: int | None, seconds: dict[str, float]) -> dict:
    """The report, which is written as JSON and shown as tables."""
    tallies = run.operators

    def names(wanted: Callable[[Tally], bool]) -> set[str]:
        return {o.name for o in operators if wanted(tallies[operator_name(o)])}

    def samples_of(all_tallies: dict[str, Tally]) -> dict:
        skipped: Counter = Counter()
        for tally in all_tallies.values():
            skipped += tally.skipped
        passed = sum(tally.passed for tally in all_tallies.values())
        failed = sum(tally.failed for tally in all_tallies.values())
        return {
            "ran": passed + failed,
            "passed": passed,
            "failed": failed,
            "skipped": sum(skipped.values()),
            "reasons": dict(skipped.most_common()),
        }

    direct = names(lambda tally: tally.direct)
    composite = names(lambda tally: tally.passed and not tally.direct) - direct
    idle = names(lambda tally: not tally.passed and not tally.failed) - direct - composite
    calls: Counter = Counter()
    for tally in [*tallies.values(), *run.errors.values()]:
        calls += tally.calls
    return {
        "torch": torch.__version__,
        "seed": seed,
        "operators": {
            "entries in op_db": len(op_db),
            "entries tried": len(operators),
            "distinct names": len({o.name for o in operators}),
            "one call of ATen": len(direct),
            "Python code over several calls of ATen": len(composite),
            "failed": len(names(lambda tally: tally.failed)),
            "did not run": {
                name: dict(sum((tallies[operator_name(o)].skipped for o in operators if o.name == name), Counter()))
                for name in sorted(idle)
            },
        },
        "overloads of ATen": len(run.aten),
        "shapes": len(modules.functions) + len(modules.refused),
        "shapes that do not compile": modules.refused,
        "calls compared": dict(calls),
        "results compared": dict(run.compared),
        "samples": samples_of(tallies),
        "error samples": samples_of(run.errors) | {"first lines of messages": dict(run.messages)},
        "seconds": seconds,
        "failures": [vars(failure) for failure in run.failures],
    }


def show(report: dict) -> None:
    console = Console(width=120)
    operators, samples, errors = report["operators"], report["samples"], report["error samples"]
    console.print(_table("operators", [(k, v) for k, v in operators.items() if isinstance(v, int)]))
    console.print(
        _table(
            "calls",
            [
                ("overloads of ATen called", report["overloads of ATen"]),
                ("shapes of calls", report["shapes"]),
                ("shapes that do not compile", len(report["shapes that do not compile"])),
                *((f"compared: {kind}", count) for kind, count in report["calls compared"].items()),
            ],
        )
    )
    for title, part in (("samples", samples), ("error samples", errors)):
        rows = [(name, part[name]) for name in ("ran", "passed", "failed", "skipped")]
        console.print(_table(title, [*rows, *((f"  {reason}", count) for reason, count in part["reasons"].items())]))
    console.print("results compared:", report["results compared"])
    console.print("first lines of error messages:", errors["first lines of messages"])
    console.print("operators that did not run:", operators["did not run"])
    console.print("seconds:", report["seconds"])
    failures = report["failures"]
    if failures:
        counts = Counter(failure["call"] for failure in failures)
        first = {failure["call"]: failure for failure in reversed(failures)}
        console.print(f"{len(failures)} calls failed, of {len(counts)} shapes; one of each:")
        for call, count in counts.most_common(LISTED):
            text = "{operator} {dtype} ({arguments}): {problem}".format(**first[call])
            console.print(f"{count} x {call}\n    {text[:400]}", markup=False, highlight=False)


def _table(title: str, rows: list[tuple[str, object]]) -> Table:
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows:
        table.add_row(name, str(value))
    return table
