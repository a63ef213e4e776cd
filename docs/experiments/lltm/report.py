"""Shows a result: as a table, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table

from .ways import WAYS

BASELINES = ("Python", "torch.compile", "C++")
"""What one would write without this toolkit."""
BAR = 0.75
"""The aim for the fused cell: at most this part of the best baseline's time, forward and backward together."""

RATIOS = ("Cython / C++", "fused / best of the first three", "fused / products")
HEAD = ("one call", *WAYS, "products alone", *RATIOS)
SIZES_HEAD = ("batch, features, state", "threads", "one call", "Python, microseconds", *WAYS[1:], "products alone")
LABELS = {"forward": "forward", "backward": "backward", "both": "both"}
MEASURED = (
    "csrc/include/interop/autograd.h",
    "csrc/include/interop/instruction_sets.h",
    "csrc/include/interop/operator.h",
    "csrc/include/interop/parallel.h",
    "csrc/include/interop/vector_math.h",
)
"""The code whose speed or behaviour this is about, beside the experiment's own: a newer one makes a result old."""
PLOT = (
    "Bars: microseconds of forward and backward of each cell; below: their times at each size and number of threads, "
    "relative to Python's, and the models' losses over the steps"
)


def size(shapes: tuple[int, int, int]) -> str:
    """What a result calls a size: a batch, features and a state."""
    return ", ".join(map(str, shapes))


def threads(count: int) -> str:
    """What a result calls a number of threads."""
    return "1 thread" if count == 1 else f"{count} threads"


def cases(result: dict) -> list[tuple[str, str, dict]]:
    """Each size and number of threads that was measured, with its times; the first is the tutorial's, on one."""
    return [(shapes, count, times) for shapes, of_size in result["times"].items() for count, times in of_size.items()]


def _medians(times: dict, what: str) -> dict[str, float]:
    return {way: times[what][way]["median"] for way in (*WAYS, "products")}


def answer(result: dict) -> str:
    """What it comes to, in a sentence."""
    shapes, count, times = cases(result)[0]
    forward, backward = (_medians(times, kind) for kind in ("forward", "backward"))
    told = {way: f"{forward[way]:.0f} and {backward[way]:.0f} µs" for way in forward}
    return (
        f"Forward and backward take {told['Cython']} in Cython, {told['C++']} in C++ and {told['Python']} in Python; "
        f"{told['Cython fused']} as one fused cell in Cython (batch, features, state: {shapes}; {count})."
    )


def tables(result: dict) -> list[Table]:
    """The tables: of the first size on one thread, and of all."""
    shapes, count, times = cases(result)[0]
    batch, features, state = shapes.split(", ")
    found = [
        Table(
            HEAD,
            _rows(times),
            title=f"microseconds, median, at batch {batch}, features {features}, state {state} on {count}",
        ),
        Table(
            SIZES_HEAD,
            _size_rows(result),
            words=(0, 2),
            title="each size and number of threads: the time of Python, and those of the others in parts of it",
        ),
    ]
    if "memory returned" in result:  # older results have none
        found.append(_memory(result))
    return found


def _memory(result: dict) -> Table:
    """What memory costs: backward at the widest weights, as glibc does it and with memory that it keeps."""
    returned = result["memory returned"]
    kept = result["times"][returned["size"]][returned["threads"]]["backward"]
    lines = []
    for way, of_way in returned["times"]["backward"].items():
        cells = [way]
        for figures in (of_way, kept[way]):
            # Older results have no span, and the products alone never have one.
            cells += [f"{figures['median']:.1f}", f"{figures['faults']:.1f}", str(figures.get("span", "-"))]
        lines.append(cells)
    return Table(
        ("cell", "glibc as it is, microseconds", "pages", "span", "memory kept, microseconds", "pages", "span"),
        lines,
        title=f"backward at {returned['size']} on {returned['threads']}; pages: those that the kernel gives in a call; "
        "span: the memory in which successive calls put the gradient of the weights, over its size",
    )


def _rows(times: dict) -> list[list[str]]:
    """The lines of the first table: median microseconds of each way, and how Cython compares."""
    lines = []
    for what, label in LABELS.items():
        median = _medians(times, what)
        fused, best = median["Cython fused"], min(median[way] for way in BASELINES)
        ratios = median["Cython"] / median["C++"], fused / best, fused / median["products"]
        lines.append([label, *(f"{value:.1f}" for value in median.values()), *(f"{ratio:.2f}" for ratio in ratios)])
    return lines


def _size_rows(result: dict) -> list[list[str]]:
    """The lines of the second table."""
    lines = []
    for shapes, count, times in cases(result):
        for what, label in LABELS.items():
            python, *others = _medians(times, what).values()
            ratios = [f"{other / python:.2f}" for other in others]
            lines.append([shapes, count.partition(" ")[0], label, f"{python:.1f}", *ratios])
    return lines


def sentences(result: dict) -> str:
    """How the ways compare, how far they agree, and how the losses fell."""
    return results.paragraphs(comparison(result), bar(result), agreement(result), training(result))


def comparison(result: dict) -> str:
    """How the ways compare over all sizes and numbers of threads."""
    compiled, cython, fused, products = {}, {}, {}, {}
    for shapes, count, times in cases(result):
        median, where = _medians(times, "both"), f"{shapes} on {count}"
        compiled[where] = median["torch.compile"] / median["Python"]
        cython[where] = median["Cython"] / median["C++"]
        fused[where] = median["Cython fused"] / min(median[way] for way in BASELINES)
        products[where] = median["products"] / median["Python"]
    return (
        "Of forward and backward together, over these sizes (batch, features, state) and threads: "
        f"Cython takes {_range(cython)} times as long as C++. "
        f"torch.compile takes {_range(compiled)} times as long as Python. "
        f"The fused cell takes {_range(fused)} times as long as the best of {', '.join(BASELINES[:-1])} and "
        f"{BASELINES[-1]}. ATen's products alone take {_range(products)} times as long as Python."
    )


def bar(result: dict) -> str:
    """Where the fused cell misses the bar, and what the products alone take there."""
    missed, measured = [], cases(result)
    for shapes, count, times in measured:
        median = _medians(times, "both")
        best = min(median[way] for way in BASELINES)
        fused, products = (median[way] / best for way in ("Cython fused", "products"))
        if fused > BAR:
            missed.append(f"{shapes} on {count}, {fused:.2f} (products alone {products:.2f})")
    met = len(measured) - len(missed)
    where = f" It misses the bar at {'; '.join(missed)}." if missed else ""
    return (
        f"The bar for the fused cell is {BAR} of the best of {', '.join(BASELINES[:-1])} and {BASELINES[-1]}, "
        f"forward and backward together. The cell meets it in {met} of {len(measured)} cases.{where}"
    )


def _range(ratios: dict[str, float]) -> str:
    """The least and the most, and where."""
    ends = (f"{ratios[where]:.2f} ({where})" for where in (min(ratios, key=ratios.get), max(ratios, key=ratios.get)))
    return " to ".join(dict.fromkeys(ends))


def agreement(result: dict) -> str:
    """How far the ways are from one another, in a sentence."""
    largest: dict[str, float] = {}
    for dtypes in result["agreement"]["largest"].values():
        for dtype, differences in dtypes.items():
            largest[dtype] = max(largest.get(dtype, 0), *differences.values())
    parts = [f"{difference:.0e} in {dtype}" for dtype, difference in largest.items()]
    return (
        f"Outputs and gradients differ from Python's by at most {' and '.join(parts)}, relative to the largest value, "
        f"at {'; '.join(result['agreement']['largest'])}."
    )


def training(result: dict) -> str:
    """How the losses fell, in a sentence or two."""
    run = result["training"]
    window = min(20, len(run["losses"]["Python"]))
    first, last = run["losses"]["Python"][0], {way: sum(run["losses"][way][-window:]) / window for way in WAYS}
    return (
        f"{run['steps']} steps on {run['text']} ({run['characters']} characters): the loss fell from {first:.2f} to "
        f"{', '.join(f'{loss:.3f} ({way})' for way, loss in last.items())} nats per character, "
        f"the mean of the last {window} steps."
    )


def draw(result: dict, path: Path) -> None:
    """Plot the losses and the times of `result` into the file `path`."""
    figure = plots.figure(9.6)
    of_first, of_all, losses = figure.subplots(3, 1)
    shapes, count, times = cases(result)[0]
    draw_times(of_first, times, f"One call at {shapes} on {count}")
    _draw_sizes(of_all, cases(result))
    _draw_losses(losses, result["training"])
    plots.key(of_first, 3)
    plots.save(figure, path)


SMOOTH = 10
COLOURS = dict(zip(WAYS, ("#8a8f98", "#b8bcc4", "#2f6db5", "#f3c489", "#e8a54b", "#c9650a"), strict=True))


def _draw_losses(axes, run: dict) -> None:
    # The curves lie on one another: the first is the widest, so that all can be seen.
    steps = range(1, run["steps"] + 1)
    for index, way in enumerate(WAYS):
        width = 8 * 0.72**index
        axes.plot(steps, trailing_mean(run["losses"][way]), color=COLOURS[way], label=way, linewidth=width, alpha=0.8)
    axes.set_xlabel(f"step; a mean of {SMOOTH}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel("loss, nats per character")
    plots.plain(axes, f"The models learn {run['text']}", "both")


def draw_times(axes, times: dict, title: str) -> None:
    """Plot the microseconds of forward and backward of each way that was timed.

    Each number is below its bar, where no line crosses it.
    """
    kinds = ("forward", "backward")
    numbers = {}
    ways = [way for way in WAYS if way in times["both"]]
    width = 0.86 / len(ways)
    for index, way in enumerate(ways):
        places = [kind + (index - (len(ways) - 1) / 2) * width for kind in range(len(kinds))]
        medians = [times[kind][way]["median"] for kind in kinds]
        spread = plots.spread([times[kind][way] for kind in kinds])
        axes.bar(
            places, medians, 0.9 * width, color=COLOURS[way], label=way, yerr=spread, ecolor=plots.ERRORS, capsize=2
        )
        numbers |= {place: f"{median:.0f}\n" for place, median in zip(places, medians, strict=True)}
    _mark_products(axes, [times[what]["products"]["median"] for what in kinds])
    for place, kind in enumerate(kinds):  # a place has one label, and may be that of the bar in the middle
        numbers[place] = numbers.get(place, "\n") + kind
    axes.set_xticks(list(numbers), list(numbers.values()), fontsize=plots.SMALL)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("microseconds")
    plots.plain(axes, title, "y")


def _draw_sizes(axes, measured: list[tuple[str, str, dict]]) -> None:
    others, most = WAYS[1:], 1.0
    width = 0.86 / len(others)
    python = [times["both"]["Python"]["median"] for *_, times in measured]
    for index, way in enumerate(others):
        places = [case + (index - (len(others) - 1) / 2) * width for case in range(len(measured))]
        of_way = [times["both"][way] for *_, times in measured]
        medians = [time["median"] / base for time, base in zip(of_way, python, strict=True)]
        most = max(most, *medians)
        spread = [
            [abs(time["quartiles"][end] - time["median"]) / base for time, base in zip(of_way, python, strict=True)]
            for end in (0, 1)
        ]
        axes.bar(
            places, medians, 0.9 * width, color=COLOURS[way], label=way, yerr=spread, ecolor=plots.ERRORS, capsize=2
        )
    axes.axhline(1, color=COLOURS["Python"], linewidth=1)
    _mark_products(
        axes,
        [times["both"]["products"]["median"] / base for (*_, times), base in zip(measured, python, strict=True)],
    )
    labels = [f"{shapes}, {count}".replace(", ", "\n") for shapes, count, _ in measured]
    axes.set_xticks(range(len(measured)), labels, fontsize=plots.SMALL)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("parts of Python's time")
    axes.set_ylim(0, 1.15 * most)  # for the medians: a quartile of a disturbed run would make all of them small
    plots.plain(axes, "Forward and backward at each batch, features, state", "y")


def _mark_products(axes, times: list[float]) -> None:
    for place, time in enumerate(times):
        label = None if place else "matrix products alone"
        axes.hlines(time, place - 0.45, place + 0.45, "#222222", ":", label=label)


def trailing_mean(values: list[float]) -> list[float]:
    """Each value with the SMOOTH - 1 before it: batches differ more than the ways do."""
    windows = (values[max(0, end - SMOOTH) : end] for end in range(1, len(values) + 1))
    return [sum(window) / len(window) for window in windows]
