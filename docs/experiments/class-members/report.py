"""Shows a result: as tables, as a plot, and as the text of README.md. All are made from the JSON alone."""

import textwrap
from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table

from . import behaviour, measure, ways

SEEN = "the collector knows the instance"
MEASURED = ("csrc/bridges", "csrc/include/interop/tensor.h", "csrc/include/interop/unwrap_reference.h")
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = (
    "Bars: nanoseconds of reading a tensor's size, by the type of the member; below: of making an instance, reading "
    "an element, an operation, getting and assigning"
)
COLOURS = dict(zip(ways.WAYS, ("#e08a1e", "#f0c48a", "#a8632b", "#8a8f98", "#2f6db5", "#3d8f58"), strict=True))


def answer(result: dict) -> str:
    """The answer to the question, in a sentence."""
    size, time, seen = result["memory"]["sys.getsizeof"], result["times"]["numel"], result["behaviour"][SEEN]
    known = [f"`{way}`" for way in ways.WAYS if way != ways.PYTHON and seen[way] == "yes"]
    (our_size, our_time), (their_size, their_time) = (
        (f"{size[way]} bytes", f"{time[way]['median']:.0f} ns") for way in (ways.TYPED, ways.PYBIND11)
    )
    return (
        f"An instance with a `cdef torch.Tensor` takes {our_size}, and reading its tensor's size {our_time}; with "
        f"pybind11, {their_size} and {their_time}. Of the compiled classes, garbage collection sees those with "
        f"{' or '.join(known)} as their member."
    )


def tables(result: dict) -> list[Table]:
    """The table of figures, and that of all answers."""
    return [figures(result), answers("what is kept, collected and copied", result, behaviour.QUESTIONS)]


def figures(result: dict) -> Table:
    """Bytes, nanoseconds and instructions."""
    memory = [[f"bytes: {what}", *(str(sizes[way]) for way in ways.WAYS)] for what, sizes in result["memory"].items()]
    times = [
        [f"nanoseconds: {what}", *(f"{result['times'][what][way]['median']:.0f}" for way in ways.WAYS)]
        for what in measure.CALLS
    ]
    counts = [
        [f"instructions: {what}", *(f"{result['instructions'][what][way]:.0f}" for way in ways.WAYS)]
        for what in measure.CALLS
        if result["instructions"]
    ]
    return Table(("memory and time", *ways.WAYS), memory + times + counts)


def answers(title: str, result: dict, questions: dict) -> Table:
    """The answers to some of the questions. An error is its type."""
    found = result["behaviour"]
    lines = [[what, *(found[what][way].partition(":")[0] for way in ways.WAYS)] for what in questions]
    return Table((title, *ways.WAYS), lines, words=None)


def sentences(_: dict) -> str:
    """What follows; the page says it."""
    return ""


def errors(result: dict) -> Table:
    """Each message once, with the ways and questions that it comes from."""
    found = {}
    for question, by_way in result["behaviour"].items():
        for way, answer in by_way.items():
            if ":" in answer:
                found.setdefault(answer, {}).setdefault(way, []).append(question)
    lines = []
    for answer, by_way in found.items():
        asked = dict.fromkeys(question for questions in by_way.values() for question in questions)
        lines.append(["; ".join(by_way), "; ".join(asked), f"`{textwrap.shorten(answer, 160, placeholder=' …')}`"])
    return Table(("way", "question", "the error"), lines, words=None)


def section(result: dict) -> str:
    """The part of README.md about one result."""
    return results.paragraphs(
        results.conditions(result),
        figures(result),
        answers("lifetime", result, behaviour.LIFETIME),
        answers("what ends a cycle through the member", result, behaviour.COLLECTION),
        answers("copies, as Cython and pybind11 make the class", result, behaviour.COPIES),
        answers("copies, with a `__reduce__`", result, behaviour.WITH_REDUCE),
        errors(result),
    )


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    figure = plots.figure(13)
    drawn = sorted(measure.CALLS, key=lambda what: what != "numel")  # that of the answer first
    for axes, what in zip(figure.subplots(len(drawn), 1), drawn, strict=True):
        calls = [(way, result["times"][what][way], COLOURS[way]) for way in ways.WAYS]
        plots.bars_of_calls(axes, "read the tensor's size" if what == "numel" else what, calls)
    plots.save(figure, path)
