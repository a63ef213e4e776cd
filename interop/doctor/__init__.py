"""``python -m interop doctor [MODULE.so]``: check what is installed, and what is wrong with a module.

It works even if ``import interop`` fails, because users run it to find out why. It needs no compiled code, and the
imports that it tests may fail. The exit status is 1 if there is a problem.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from interop.cli import USAGE, CommandError, Parser, is_file
from interop.doctor.finding import Finding, Level

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Run ``python -m interop doctor`` with `arguments`, and return the exit status."""
    from interop.doctor.page import show

    parser = Parser(
        prog="python -m interop doctor",
        description="Check what is installed, and what is wrong with a module.",
        examples={
            "python -m interop doctor": "check what is installed, and whether it fits together",
            "python -m interop doctor build/lib/ops.so": "find out why a module cannot be imported",
            "python -m interop doctor --json": "the same as JSON: every finding with its level and its fix",
        },
    )
    parser.add_argument("modules", metavar="MODULE.so", nargs="*", help="check this compiled extension module too")
    parser.add_argument("--no-import", action="store_true", help="do not import MODULE.so, because its code would run")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON, once all checks are done")
    parser.add_argument("--coverage", action="store_true", help="show only how much of ATen is declared")
    options = parser.parse_args(arguments)
    if options.coverage:
        if options.json:
            parser.error("--coverage prints text only: leave out --json")
        return _print_coverage()
    files = [Path(module) for module in options.modules]
    for file in files:
        if not is_file(file):
            kind = "a folder" if file.is_dir() else "not a file"
            raise CommandError(f"MODULE.so must be a compiled extension module, but {str(file)!r} is {kind}", USAGE)

    # Show each section when it is done, so that earlier findings are visible if the next one takes long or crashes.
    report = []
    for title, findings in _examine(files, run=not options.no_import):
        report.append((title, findings))
        if not options.json:
            show(title, findings)
    found = [finding for _, findings in report for finding in findings]
    problems = sum(finding.level is Level.PROBLEM for finding in found)
    warnings = sum(finding.level is Level.WARNING for finding in found)
    if options.json:
        sections = [{"title": title, "findings": [asdict(finding) for finding in found]} for title, found in report]
        print(json.dumps({"problems": problems, "warnings": warnings, "sections": sections}, indent=1))
    else:
        print(f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}")
    return int(problems > 0)


def _examine(files: list[Path], run: bool) -> Iterator[tuple[str, list[Finding]]]:
    """The titles and findings of all sections: those of the environment, and one for each module."""
    from interop.doctor import environment

    for title, examine in environment.SECTIONS.items():
        if findings := examine():
            yield title, findings
    if files:
        try:
            from interop.doctor.module import examine_module
        except ModuleNotFoundError as error:
            raise CommandError(
                f"the doctor reads modules with pyelftools, but {error}. Run: pip install pyelftools"
            ) from error
        for file in files:
            yield str(file), examine_module(file, run=run)


def _print_coverage() -> int:
    try:
        from interop.doctor.coverage import coverage

        print(coverage())
    except ImportError as error:
        raise CommandError(f"torch's generator reads the list of operators, but {error}") from error
    return 0


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
