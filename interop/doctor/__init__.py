"""``python -m interop doctor [MODULE.so]``: what is installed, whether it fits together, what is wrong with a module.

It works where ``import interop`` fails, since this is what it is asked about: nothing that it needs is compiled, and
what it imports to look at it may fail. The exit status is 1 where there is a problem.
"""

from pathlib import Path

from interop.cli import USAGE, CommandError, Parser
from interop.doctor.finding import Level

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Run ``python -m interop doctor`` with `arguments`, and return the exit status."""
    from interop.doctor.page import show

    parser = Parser(prog="python -m interop doctor", description=__doc__.partition(": ")[2].partition("\n")[0])
    parser.add_argument(
        "modules", metavar="MODULE.so", nargs="*", help="look at this compiled extension module as well"
    )
    parser.add_argument("--no-import", action="store_true", help="do not import MODULE.so, whose code would run")
    parser.add_argument("--coverage", action="store_true", help="say how much of ATen is declared, and nothing else")
    options = parser.parse_args(arguments)
    if options.coverage:
        return _print_coverage()
    files = [Path(module) for module in options.modules]
    for file in files:
        if not file.is_file():
            kind = "a folder" if file.is_dir() else "no file"
            raise CommandError(f"MODULE.so must be a compiled extension module, and {str(file)!r} is {kind}", USAGE)

    # Asked for one by one, so that what is known already is shown where looking at the next takes long, or crashes.
    from interop.doctor import environment

    found = []
    for title, examine in environment.SECTIONS.items():
        found += (findings := examine())
        if findings:
            show(title, findings)
    if files:
        try:
            from interop.doctor.module import examine_module
        except ModuleNotFoundError as error:
            raise CommandError(f"modules are read by pyelftools, and {error}. Run: pip install pyelftools") from error
        for file in files:
            found += (findings := examine_module(file, run=not options.no_import))
            show(str(file), findings)
    problems = sum(finding.level is Level.PROBLEM for finding in found)
    warnings = sum(finding.level is Level.WARNING for finding in found)
    print(f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}")
    return int(problems > 0)


def _print_coverage() -> int:
    try:
        from interop.doctor.coverage import coverage

        print(coverage())
    except ImportError as error:
        raise CommandError(f"the list of operators is read by torch's generator, and {error}") from error
    return 0


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
