"""Shows what an experiment does: live progress on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from experiments.harness import tables

__all__ = ["console", "progress", "race", "say", "show", "waiting"]

console = Console(highlight=False)
if not console.is_terminal:
    console.width = 120  # of a log; rich would take 80


def say(text: str) -> None:
    """Print one line."""
    console.print(text, markup=False, soft_wrap=True)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show that something of unknown length goes on, and then how long it took."""
    begin = time.monotonic()
    if console.is_terminal:
        with console.status(text):
            yield
        said = f"{text} ... "
    else:
        say(text)
        yield
        said = "    "
    say(f"{said}done after {time.monotonic() - begin:.0f} s")


@contextmanager
def progress(text: str, total: int, lines: int = 10) -> Iterator[Callable[..., None]]:
    """Show how far a work of `total` steps is. Call what it gives after each step, with a few words about the step.

    A second argument 0 says that the words are about a step that still goes on. Without a terminal it
    prints at most `lines` lines.
    """
    if not console.is_terminal:
        done = 0

        def plain(detail: str = "", steps: int = 1) -> None:
            nonlocal done
            done += steps
            if steps and done * lines // total > (done - 1) * lines // total:
                say(f"{text} {done}/{total}  {detail}".rstrip())

        yield plain
        return
    with _bars() as bar:
        task = bar.add_task(text, total=total, detail="")
        yield lambda detail="", steps=1: bar.update(task, advance=steps, detail=detail)


@contextmanager
def race(text: str, names: Sequence[str], total: int, lines: int = 8) -> Iterator[Callable[[str, str], None]]:
    """Show how far works of these `names` are, `total` steps each, a bar for each.

    Call what it gives after each step, with the name and a few words. Without a terminal it prints at most
    `lines` lines.
    """
    if console.is_terminal:
        with _bars() as bars:
            tasks = {name: bars.add_task(name, total=total, detail="") for name in names}
            yield lambda name, detail: bars.update(tasks[name], advance=1, detail=detail)
        return
    done = dict.fromkeys(names, 0)

    def plain(name: str, detail: str) -> None:
        before = sum(done.values()) * lines // (total * len(names))
        done[name] += 1
        if sum(done.values()) * lines // (total * len(names)) > before:
            said = ", ".join(f"{other} {steps}/{total}" for other, steps in done.items())
            say(f"{text}: {said}; {name} has {detail}")

    yield plain


def _bars() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[detail]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        console=console,
    )


def show(table: tables.Table) -> None:
    """Print a table."""
    if table.title:
        say(table.title)  # as the title of rich's table it would wrap at the width of the table
    result = Table()
    for index, column in enumerate(table.head):
        result.add_column(column, justify="left" if table.words is None or index in table.words else "right")
    for row in table.rows:
        result.add_row(*(Text(cell.replace("`", "")) for cell in row))  # not as markup, neither rich's nor Markdown
    console.print(result)
