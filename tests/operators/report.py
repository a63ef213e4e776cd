"""Shows a report as tables."""

from collections import Counter

from rich.console import Console
from rich.table import Table

LISTED = 60  # shapes of calls that failed


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
