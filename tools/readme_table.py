"""Writes the figures in README.md and docs/comparison.md, and the picture of the front page, from recorded results.

`python tools/readme_table.py` writes them. With ``--check`` it only says whether they are up to date. A figure that no
experiment has recorded is a dash in the tables, and is missing in the picture.
"""

import html
import json
import re
import sys
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

from marked import with_section

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from experiments.harness import age  # noqa: E402

EXPERIMENTS = ROOT / "docs" / "experiments"
PAGES = (ROOT / "README.md", ROOT / "docs" / "comparison.md")
BEGIN = "<!-- figures: written by `python tools/readme_table.py` -->"
END = "<!-- end of figures -->"
MISSING = "-"
OLD = "†"
PICTURE = ROOT / "docs" / "static" / "costs.svg"

EXPERIMENTS_SHOWN = ("crossing", "build-time", "bridges")
ANSWERS = {"custom-ops": "an operator", "lltm": "a recurrent cell", "ports": "three ported extensions"}
"""The experiments with more than an empty call, whose answers the pages repeat, and what each is about."""
ANSWER = re.compile(r"<!-- answer: .*?\n\n\*\*(.*?)\*\*\n", re.DOTALL)
OURS = "torch-interop"

# The columns of the table in README.md, and their names in the experiments.
TOOLS = {
    OURS: "Cython",
    "pybind11": "pybind11",
    "nanobind": "nanobind",
    "tvm-ffi": "tvm-ffi",
    "torch.library": "torch.ops",
}
CALLS = ("1 tensor", "numel")
"""The names of a call with one tensor, preferred first. Old results of the experiment have only `numel`."""

FEWEST = {"pybind11": "pybind11, fewest headers"}
"""Tools that compile faster with chosen headers: torch's documentation includes torch/extension.h."""
LOADERS = {"Cython": "interop", "pybind11": "cpp_extension"}
BY_DISPATCHER = {"torch.library": "torch.library, an operator"}
BUILT_BY = {"pybind11": "pybind11 by cpp_extension"}
"""What the picture calls tools of which a part shows more than the name says."""
BUILDS = {"from an edit to the module, s": "edited", "the first module on a machine, s": "cold"}
CONVERSIONS = {
    "tensor from array": ("interop", "torch"),
    "array from tensor": ("interop", "torch"),
    "memoryview": ("as_memoryview", ""),
    "tensor from bytearray": ("interop", "torch"),
    "tensor by DLPack": ("interop", "torch"),
    "capsule from tensor": ("interop", "torch"),
}
SHARED = {
    "from_numpy": "tensor from array",
    "to_numpy": "array from tensor",
}
"""The conversions that the picture shows."""


def newest(name: str) -> dict:
    """The newest recorded result of an experiment with a GIL, or an empty dict."""
    paths = sorted((EXPERIMENTS / name / "results").glob("*.json"))
    with_gil = (path for path in paths if not path.stem.endswith("-free-threaded"))
    results = [json.loads(path.read_text(encoding="utf-8")) for path in with_gil]
    return max(results, key=lambda result: result["date"], default={})


def find(result: dict, *keys: str) -> float | None:
    """The value under `keys` in a result, or its median if it has one."""
    found = result
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found.get("median") if isinstance(found, dict) else found


def row(title: str, figures: list[float | None], digits: int) -> str:
    """A line of a table."""
    cells = [MISSING if figure is None else f"{figure:.{digits}f}" for figure in figures]
    return f"| {' | '.join([title, *cells])} |"


def each_tool(title: str, digits: int, figure: Callable[[str], float | None]) -> str:
    return row(title, [figure(how) for how in TOOLS.values()], digits)


def one_tensor(crossing: dict) -> str:
    """The name of the call with one tensor in a result of the experiment crossing."""
    return next((call for call in CALLS if call in crossing.get("times", {})), CALLS[-1])


def tools_table(crossing: dict, build_time: dict) -> list[str]:
    """The time of a call and of a compilation with each tool."""
    what = one_tensor(crossing)
    return [
        f"| measured | {' | '.join(TOOLS)} |",
        "|---|" + "--:|" * len(TOOLS),
        each_tool("a call that counts a tensor's elements, ns", 0, lambda how: find(crossing, "times", what, how)),
        each_tool("g++ on a file of five functions, s", 1, lambda how: find(crossing, "compiling", how)),
        each_tool("the same, fewest headers, s", 1, lambda how: find(crossing, "compiling", FEWEST.get(how, how))),
        *(
            each_tool(title, 1, lambda how, when=when: find(build_time, "times", when, LOADERS.get(how, "")))
            for title, when in BUILDS.items()
        ),
    ]


def conversions_table(bridges: dict) -> list[str]:
    """The time to share memory here and with torch's own functions."""
    lines = ["| nanoseconds of one conversion, one dimension | torch-interop | torch |", "|---|--:|--:|"]
    for what, ways in CONVERSIONS.items():
        lines.append(row(what, [find(bridges, "times", f"{what}, 1-d", how) for how in ways], 0))
    return lines


def link(name: str, page: Path, text: str = "") -> str:
    folder = "docs/experiments" if page.parent == ROOT else "experiments"
    return f"[{text or name}]({folder}/{name}/README.md)"


def sources(results: dict[str, dict], page: Path) -> str:
    """The machine of each experiment's figures and their date, and whether its page says that they are old."""
    found: dict[str, list[str]] = {}
    for name, result in results.items():
        if not result:
            found.setdefault("nothing is recorded yet", []).append(link(name, page))
            continue
        machine = f"{result['machine']['cpu']}, {result['machine']['cores']} cores"
        where = f"{machine}, torch {result['versions']['torch']}"
        said = age.BEGIN in readme(name)
        found.setdefault(where, []).append(f"{link(name, page)} ({result['date']}{OLD if said else ''})")
    text = "; ".join(f"{where}: {', '.join(names)}" for where, names in found.items())
    return f"{text}. {OLD} {age.OLDER}." if OLD in text else f"{text}."


def readme(name: str) -> str:
    """The page of an experiment."""
    return (EXPERIMENTS / name / "README.md").read_text(encoding="utf-8")


def ranges(lltm: dict) -> str:
    """The least and the most of each cell's time, relative to Python's, over all sizes and numbers of threads."""
    cases = [times["both"] for of_size in lltm["times"].values() for times in of_size.values()]
    parts = []
    for way, called in {"Cython": "Cython", "C++": "C++", "Cython fused": "the fused cell"}.items():
        found = [find(times, way) / find(times, "Python") for times in cases]
        parts.append(f"{called} {min(found):.2f} to {max(found):.2f}")
    return f" Over all {len(cases)} sizes and numbers of threads, relative to Python's time: {', '.join(parts)}."


def answers(page: Path) -> list[str]:
    """A line for each of `ANSWERS`: the sentence of its page, and for the LLTM its other sizes."""
    lines = []
    for name, about in ANSWERS.items():
        if found := ANSWER.search(readme(name)):
            more = ranges(newest(name)) if name == "lltm" else ""  # its sentence has one size
            lines.append(f"- {link(name, page, about)}: {found[1]}{more}")
    return lines


def section(page: Path) -> str:
    """The text between the marks in a page."""
    results = {name: newest(name) for name in (*EXPERIMENTS_SHOWN, *ANSWERS)}
    parts = [
        "\n".join(tools_table(results["crossing"], results["build-time"])),
        "\n".join(conversions_table(results["bridges"])),
        "### More than an empty call",
        "\n".join(answers(page)),
        f"Times are medians. {sources(results, page)}",
    ]
    return "\n\n".join(parts)


Bars = list[tuple[str, float]]


def bars() -> dict[str, Bars]:
    """The data of the picture, by title and unit of its parts: each tool with its figure, the lowest first."""
    crossing, build_time, bridges = map(newest, EXPERIMENTS_SHOWN)
    what = one_tensor(crossing)
    found = {
        "A call with one tensor, ns": {
            BY_DISPATCHER.get(tool, tool): find(crossing, "times", what, how) for tool, how in TOOLS.items()
        },
        "From an edit to its module, s": {
            BUILT_BY.get(tool, tool): find(build_time, "times", "edited", LOADERS.get(how, ""))
            for tool, how in TOOLS.items()
        },
    }
    for title, conversion in SHARED.items():
        ways = zip((OURS, "torch"), CONVERSIONS[conversion], strict=True)
        found[f"{title}, ns"] = {tool: find(bridges, "times", f"{conversion}, 1-d", how) for tool, how in ways}
    return {
        title: sorted(((tool, round(one, 1)) for tool, one in figures.items() if one is not None), key=itemgetter(1))
        for title, figures in found.items()
    }


def shown() -> str | None:
    """The data that the existing picture was drawn from, which it contains. None without a picture."""
    text = PICTURE.read_text(encoding="utf-8") if PICTURE.exists() else ""
    found = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    return html.unescape(found[1]) if found else None


def draw() -> None:
    """Draw the picture."""
    from experiments.harness import plots  # here, because the tables do not need matplotlib

    found = bars()
    counts = [max(1, len(one)) for one in found.values()]
    figure = plots.figure(0.27 * sum(counts) + 0.42 * len(counts))
    for axes, (title, one) in zip(figure.subplots(len(counts), 1, height_ratios=counts), found.items(), strict=True):
        values = [(tool, value, plots.OURS if tool == OURS else plots.OTHER) for tool, value in one]
        name, _, unit = title.rpartition(", ")
        plots.bars_of_values(axes, name, values, 1 if unit == "s" else 0, unit)
    plots.save(figure, PICTURE, json.dumps(found), first=False)


def main() -> int:
    stale = []
    if shown() != json.dumps(bars()):
        stale.append(str(PICTURE.relative_to(ROOT)))
        if "--check" not in sys.argv[1:]:
            draw()
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        new = with_section(old, BEGIN, END, section(page))
        if new != old:
            stale.append(str(page.relative_to(ROOT)))
            if "--check" not in sys.argv[1:]:
                page.write_text(new, encoding="utf-8")
    if stale and "--check" in sys.argv[1:]:
        print(f"out of date: {', '.join(stale)}; run: python tools/readme_table.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
