"""Shows what an experiment does: live progress on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

__all__ = ["console", "progress", "say", "table", "waiting"]

console = Console(highlight=False)
if not console.is_terminal:
    console.width = 120  # of a log; rich would take 80

_PLAIN_LINES = 10


def say(text: str) -> None:
    """Print one line."""
    console.print(text, markup=False, soft_wrap=True)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show that something of unknown length goes on."""
    if console.is_terminal:
        with console.status(text):
            yield
    else:
        say(text)
        yield


@contextmanager
def progress(text: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show how far a work of `total` steps is. Call what it gives after each step, with a few words about the step."""
    if not console.is_terminal:
        done = 0

        def plain(detail: str = "") -> None:
            nonlocal done
            done += 1
            if done * _PLAIN_LINES // total > (done - 1) * _PLAIN_LINES // total:
                say(f"{text} {done}/{total}  {detail}".rstrip())

        yield plain
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(text, total=total, detail="")
        yield lambda detail="": bar.update(task, advance=1, detail=detail)


def table(title: str, head: list[str], rows: list[list[str]]) -> None:
    """Print a table whose first column is words and whose others are numbers."""
    result = Table(title=title, title_justify="left")
    for index, column in enumerate(head):
        result.add_column(column, justify="right" if index else "left")
    for row in rows:
        result.add_row(*row)
    console.print(result)
