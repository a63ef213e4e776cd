"""Show findings: as a table on a terminal, as plain lines elsewhere."""

import re
import sys
from collections.abc import Iterable
from dataclasses import replace

from interop.doctor.finding import Finding, Level

__all__ = ["show"]

_STYLES = {Level.OK: ("✓", "green"), Level.WARNING: ("!", "bold yellow"), Level.PROBLEM: ("✗", "bold red")}


def show(title: str, findings: Iterable[Finding]) -> None:
    """Print one section of the page."""
    title = _printable(title)
    findings = [replace(one, text=_printable(one.text), fix=_printable(one.fix)) for one in findings]
    try:
        from rich.console import Console
    except ImportError:
        console = None
    else:
        console = Console(highlight=False)
    if console is not None and console.is_terminal:
        _show_on_terminal(console, title, findings)
        return
    print(title)
    width = max((len(finding.subject) for finding in findings), default=0)
    for finding in findings:
        print(f"  {finding.level:<8} {finding.subject:<{width}}  {finding.text}")
        if finding.fix:
            print(f"  {'':<8} {'':<{width}}  fix: {finding.fix}")
    print()
    sys.stdout.flush()  # other processes may write to the same stream next


def _printable(text: str) -> str:
    """Escape characters that would break the line, the terminal or the encoding, such as those in damaged files."""
    readable = re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda found: found[0].encode("unicode_escape").decode(), text)
    encoding = sys.stdout.encoding or "utf-8"
    return readable.encode(encoding, "backslashreplace").decode(encoding)


def _show_on_terminal(console, title: str, findings: Iterable[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", box=None, show_header=False, padding=(0, 1))
    for finding in findings:
        mark, style = _STYLES[finding.level]
        text = Text(finding.text)
        if finding.fix:
            text.append("\n→ ", style=style).append(finding.fix)
        table.add_row(Text(mark, style=style), finding.subject, text)
    console.print(table)
    console.print()
