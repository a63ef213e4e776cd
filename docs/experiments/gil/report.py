"""Shows a result: as tables, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table, table_of_calls

from . import ways

PRODUCTS = [f"product of {size}" for size in ways.SIZES]
LABELS = {"held": "held", "released": "released", "torch": "torch.mm"}
ALONE = {how: LABELS.get(how, how) for how in ways.PRODUCTS}
"""The measurements while nothing else runs."""
COLOURS = {"held": "#8a8f98", "released": "#e08a1e", "torch": "#2f6db5"}
MEASURED = ("csrc/bridges", "csrc/include/interop/gil.h", "csrc/include/interop/tensor.h", "interop/_bridges.pyx")
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = (
    "Bars: products on two threads, with the GIL held, released, and by torch.mm; below: products beside a thread "
    "that counts"
)


def answer(result: dict) -> str:
    """The answer to the question, in a sentence."""
    empty, threads = result["times"]["empty"], result["threads"][PRODUCTS[-1]]
    added = empty["released"]["median"] - empty["held"]["median"]
    return (
        f"Two threads that release the GIL compute {threads['released']['median']:.2f} times as many products of "
        f"{ways.SIZES[-1]} rows as one thread, and {threads['held']['median']:.2f} times as many if they hold it; "
        f"releasing it and taking it again adds {added:.0f} ns to a call."
    )


def tables(result: dict) -> list[Table]:
    """The tables, which need their titles."""
    empty = {("empty", how): how for how in result["times"]["empty"]}
    return [
        table_of_calls("the GIL is", result, empty, 1, "nanoseconds of a call that does nothing"),
        Table(
            ["rows", *ALONE.values()],
            _products(result),
            title="microseconds of a product where nothing else runs",
        ),
        Table(
            ["rows", *(f"{label}: {what}" for label in LABELS.values() for what in ("own", "other"))],
            _shared(result),
            title="products (own) beside a thread that counts in Python (other), as parts of what each does alone",
        ),
        Table(
            ["rows", *LABELS.values()],
            _threads(result),
            title="products on two threads, in times of those on one",
        ),
        Table(
            ["short call in a loop in Python", "two threads"],
            [[f"`{call}`", f"{result['loops'][call]['median']:.2f}"] for call in ways.LOOPS],
            title="calls on two threads, in times of those on one",
        ),
        Table(
            ["use count", "alone", "beside a thread"],
            _copies(result),
            title="microseconds of a pause of a millisecond and a copy, without the GIL",
        ),
    ]


def _products(result: dict) -> list[list[str]]:
    return [
        [
            what.removeprefix("product of "),
            *(f"{result['times'][what][how]['median'] / 1e3:.2f}" for how in ALONE),
        ]
        for what in PRODUCTS
    ]


def _shared(result: dict) -> list[list[str]]:
    return [
        [
            what.removeprefix("product of "),
            *(f"{result['sharing'][what][how][who]['median']:.2f}" for how in LABELS for who in ("own", "other")),
        ]
        for what in PRODUCTS
    ]


def _threads(result: dict) -> list[list[str]]:
    return [
        [what.removeprefix("product of "), *(f"{result['threads'][what][how]['median']:.2f}" for how in LABELS)]
        for what in PRODUCTS
    ]


def _copies(result: dict) -> list[list[str]]:
    alone, beside = result["copies"]["alone"], result["copies"]["beside a thread"]
    return [
        [f"{how}, {language}", *(f"{places[how][language]['median']:.1f}" for places in (alone, beside))]
        for how in ways.COPIES
        for language in alone[how]
    ]


def sentences(result: dict) -> str:
    """What follows, with the figures."""
    parts = [] if result["gil"] else ["This Python ran without a GIL."]
    for unit, table in results.units(result):
        empty = table["empty"]
        parts.append(
            f"Releasing the GIL and taking it again adds {empty['released'] - empty['held']:.0f} "
            f"{'nanoseconds' if unit == 'time' else unit} to a call of Cython and "
            f"{empty['released, C++'] - empty['held, C++']:.0f} to one of C++."
        )
    beside = result["copies"]["beside a thread"]
    first, kept, further = (f"{beside[how]['Cython']['median'] / 1e3:.1f}" for how in ways.COPIES)
    parts.append(
        f"Beside a busy thread a pause of a millisecond and the first copy of a tensor, made without the GIL, take "
        f"{first} ms; with a further copy they take {further} ms. "
        f"Where the first copy is kept for another pause before it is dropped, they take {kept} ms."
    )
    return " ".join(parts)


def draw(result: dict, path: Path) -> None:
    """Plot work on two threads, and work beside a busy thread."""
    figure = plots.figure(6)
    of_two, beside = figure.subplots(2, 1)
    width = 0.8 / len(LABELS)
    for index, how in enumerate(LABELS):
        places = [line + (index - 1) * width for line in range(len(PRODUCTS))]
        speeds = [result["threads"][what][how]["median"] for what in PRODUCTS]
        of_two.bar(places, speeds, 0.9 * width, color=COLOURS[how], label=LABELS[how])
        own = [result["sharing"][what][how]["own"]["median"] for what in PRODUCTS]
        other = [result["sharing"][what][how]["other"]["median"] for what in PRODUCTS]
        beside.bar(places, own, 0.9 * width, color=COLOURS[how], label=LABELS[how])
        beside.bar(places, other, 0.9 * width, bottom=own, color=COLOURS[how], alpha=0.35)
    plots.plain(of_two, "Products on two threads", "y")
    of_two.set_ylabel("times as many as on one")
    plots.plain(beside, "Products, beside a thread that counts in Python (faded)", "y")
    beside.set_ylabel("parts of what each does alone")
    plots.key(of_two, 3)
    for axes in (of_two, beside):
        axes.set_xticks(range(len(PRODUCTS)), [f"{size} rows" for size in ways.SIZES])
        axes.tick_params(axis="x", length=0)
        axes.axhline(1, color=plots.ERRORS, linewidth=0.8, linestyle=":")
    plots.save(figure, path)
