"""Tables of results, which a terminal and README.md show."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Table", "table_of_calls"]


@dataclass(frozen=True)
class Table:
    """A table, with or without a title above it. As a string it is Markdown.

    The columns `words` are words, the others numbers; None stands for words alone.
    """

    head: Sequence[str]
    rows: list[list[str]]
    words: Collection[int] | None = (0,)
    title: str = ""

    def __str__(self) -> str:
        head, *rows = (f"| {' | '.join(line)} |" for line in (self.head, *self.rows))
        columns = range(len(self.head))
        rule = f"|{'|'.join('---' if index in self.words else '--:' for index in columns)}|" if self.words else ""
        title = [f"{self.title[0].upper()}{self.title[1:]}:", ""] if self.title else []
        return "\n".join([*title, head, rule or f"| {' | '.join('---' for _ in columns)} |", *rows])


def table_of_calls(
    title: str, result: dict, labels: Mapping[tuple[str, str], str], digits: int = 0, above: str = ""
) -> Table:
    """Nanoseconds and instructions of single calls, by what they do and how, as of `calls.times`.

    `title` heads the column of labels. A result may lack some of the instructions.
    """
    rows = []
    for (what, how), label in labels.items():
        count = result["instructions"].get(what, {}).get(how)
        time = result["times"][what][how]["median"]
        rows.append([label, f"{time:.{digits}f}", "-" if count is None else f"{count:.0f}"])
    return Table((title, "nanoseconds", "instructions"), rows, title=above)
