"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table

from . import measure

WORKS = "works"
COLOURS = {WORKS: "#8cc08f", "ImportError": "#f2c078"}
OURS, PYBIND11 = "interop", "pybind11"
MEASURED = ("csrc/bootstrap.cpp", "interop/abi", "interop/build", "interop/doctor")
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = "A field for each situation and module: works, ImportError, or the signal or wrong value that it ends with"
WRONG = "#e07b6a"
"""What crashes or lies."""


def answer(result: dict) -> str:
    """The answer to the question, in a sentence."""
    count = len(result["cases"])
    told = []
    for way in (OURS, PYBIND11):
        works, _, bad = _counts(result, way)
        told.append(f"works in {works} and crashes or gives wrong values in {bad}")
    return f"Of {count} situations, a module with our bootstrap {told[0]}; one of pybind11 {told[1]}."


def tables(result: dict) -> list[Table]:
    """The table of outcomes."""
    lines = [
        [measure.SITUATIONS[key].text, *(ways[way]["outcome"] for way in measure.WAYS)]
        for key, ways in result["cases"].items()
    ]
    return [Table(("situation", *measure.WAYS), lines, words=None)]


def sentences(result: dict) -> str:
    """How often each way works, raises an ImportError, and does neither, in sentences."""
    parts = []
    for way in measure.WAYS:
        works, imports, bad = _counts(result, way)
        parts.append(
            f"{way}: works in {works} of {len(result['cases'])} situations, "
            f"raises ImportError in {imports}, crashes or gives wrong values in {bad}."
        )
    return " ".join(parts)


def _counts(result: dict, way: str) -> tuple[int, int, int]:
    """In how many situations a module works, raises an ImportError, and does neither."""
    outcomes = [ways[way]["outcome"] for ways in result["cases"].values()]
    works, imports = outcomes.count(WORKS), outcomes.count("ImportError")
    return works, imports, len(outcomes) - works - imports


def section(result: dict) -> str:
    """The part of README.md about one result."""
    outcomes = [
        [measure.SITUATIONS[key].text, *(_outcome(ways[way]) for way in measure.WAYS), measure.SITUATIONS[key].cure]
        for key, ways in result["cases"].items()
    ]
    found = "`python -m interop doctor` finds in the file"
    return results.paragraphs(
        results.conditions(result),
        Table(("situation", *measure.WAYS, "cure"), outcomes, words=None),
        sentences(result),
        Table(("situation", "module", "what it says"), _messages(result), words=None),
        Table(("situation", "module", found), _doctor(result), words=None),
    )


def draw(result: dict, path: Path) -> None:
    """Plot the outcomes of `result` into the file `path`."""
    (outcomes_of_all,) = tables(result)
    lines = [(text.replace("`", ""), *outcomes) for text, *outcomes in outcomes_of_all.rows]
    figure = plots.figure(0.56 * len(lines) + 0.4)
    axes = figure.subplots()
    for y, (_, *outcomes) in enumerate(lines):
        for x, outcome in enumerate(outcomes):
            axes.barh(y, 0.96, left=x + 0.02, height=0.88, color=COLOURS.get(outcome, WRONG))
            axes.text(x + 0.5, y, plots.folded(outcome, 8), ha="center", va="center", fontsize=plots.SMALL)
    axes.set_yticks(range(len(lines)), [plots.folded(line[0], 28) for line in lines], fontsize=plots.SMALL)
    axes.set_xticks([x + 0.5 for x in range(len(measure.WAYS))], [plots.folded(way, 9) for way in measure.WAYS])
    axes.xaxis.tick_top()
    axes.set_xlim(0, len(measure.WAYS))
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    plots.save(figure, path)


def _outcome(case: dict) -> str:
    outcome = case["outcome"]
    return outcome if outcome in COLOURS else f"**{outcome}**"


def _messages(result: dict) -> list[list[str]]:
    """Each message once, with all whom it comes from."""
    lines = []
    for key, ways in result["cases"].items():
        said = {}
        for way, case in ways.items():
            if case["outcome"] != WORKS:
                message = f"`{case['message']}`" if case["message"] else "nothing"
                if case["outcome"] == "wrong values":
                    message = case["message"]
                elif case["outcome"] != "ImportError":
                    message += f", in {case['during']}"
                said.setdefault(message, []).append(way)
        lines += [[measure.SITUATIONS[key].text, "; ".join(who), message] for message, who in said.items()]
    return lines


def _doctor(result: dict) -> list[list[str]]:
    lines = []
    for key, ways in result["cases"].items():
        found = {}
        for way, case in ways.items():
            if case["doctor"]:
                found.setdefault("; ".join(case["doctor"]), []).append(way)
        lines += [[measure.SITUATIONS[key].text, "; ".join(who), f"`{text}`"] for text, who in found.items()]
    return lines
