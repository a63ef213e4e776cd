"""Shows a result: as tables, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from interop.experiments import plots, results

from . import ways

HEAD = ("", "nanoseconds", "instructions")
LAYOUT_HEAD = ("object", "field", "offset", "bytes")
LABELS = {"mirror": "a mirror", "header": "the real header", "function": "a C function", "attribute": "an attribute"}
LABELS |= {"C++": "the real header, in C++"}
COLOURS = {"mirror": "#e08a1e", "header": "#c9650a", "function": "#2f6db5", "attribute": "#3d8f58", "C++": "#8a8f98"}


def layout_rows(result: dict) -> list[list[str]]:
    """The lines of the table of fields. Every object begins with what all Python objects have, 16 bytes."""
    lines = []
    for what, layout in result["layout"].items():
        lines += [[what, name, str(offset), str(size)] for name, offset, size in layout["fields"]]
        lines.append([what, "the whole object", "", str(layout["size"])])
    return lines


def rows(result: dict) -> list[list[str]]:
    """The lines of the table of reads."""
    lines = []
    for what in ways.OBJECTS:
        for way, label in LABELS.items():
            count = result["instructions"].get(what, {}).get(way)
            time = result["times"][what][way]["median"]
            lines.append([f"{what}, {label}", f"{time:.1f}", "-" if count is None else f"{count:.0f}"])
    return lines


def sentences(result: dict) -> str:
    """How the ways compare."""
    parts = []
    for unit, table in results.units(result):
        tensor = table["torch.Tensor"]
        parts.append(
            f"A tensor is read by a mirror in {tensor['mirror'] / tensor['header']:.2f} times the {unit} of the real "
            f"header, {tensor['mirror'] / tensor['function']:.3f} times that of the C shim, and "
            f"{tensor['mirror'] / tensor['attribute']:.2f} times that of the method."
        )
    parts.append(f"The handle for the C shim came from {result['handle']}.")
    if result["compiling"]:
        mirror, header = result["compiling"]["mirror"], result["compiling"]["header"]
        parts.append(f"g++ takes {mirror:.1f} s for the header of the mirror and {header:.1f} s for the real one.")
    return " ".join(parts)


def caught(result: dict) -> str:
    """What the compiler says of mirrors that do not fit."""
    lines = [f"- {label}: {f'`{said}`' if said else 'compiles'}" for label, said in result["caught"].items()]
    return "\n".join(["What the compiler says of the mirrors:", "", *lines])


def section(machine: str, result: dict) -> str:
    """The part of README.md about the result of one machine."""
    fields = results.markdown_table(LAYOUT_HEAD, layout_rows(result), words=(0, 1))
    lines = results.markdown_table(("one read", *HEAD[1:]), rows(result))
    plot = f"![Nanoseconds of each read](results/{machine}.png)"
    parts = [results.conditions(result), fields, lines, plot, sentences(result)]
    return "\n\n".join([*parts, *([caught(result)] if result["caught"] else [])])


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    figure = plots.figure(8, 6)
    for axes, what in zip(figure.subplots(3, 1), ways.OBJECTS, strict=True):
        calls = [(label, result["times"][what][way], COLOURS[way]) for way, label in LABELS.items()]
        plots.bars_of_calls(axes, f"Reading a {what}", calls)
        if what != "complex":
            axes.set_xlabel("")
    plots.save(figure, path)
