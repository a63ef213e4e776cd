"""Shows a result: as tables, as a plot, and as the text of README.md. All three are made from the JSON alone."""

from pathlib import Path

from experiments.harness import plots, results
from experiments.harness.tables import Table, table_of_calls

from . import ways

LABELS = {"mirror": "a mirror", "header": "the real header", "function": "a C function", "attribute": "an attribute"}
LABELS |= {"C++": "the real header, in C++"}
MEASURED = ("csrc/layout.cpp", "csrc/include/interop/tensor.h")
"""The measured code, in addition to the experiment's own. A change of it makes a result old."""
PLOT = "Bars: nanoseconds of reading a field of a tensor, by way; below: of a dtype and of a complex number"
COLOURS = {"mirror": "#e08a1e", "header": "#c9650a", "function": "#2f6db5", "attribute": "#3d8f58", "C++": "#8a8f98"}


def answer(result: dict) -> str:
    """The answer to the question, in a sentence."""
    times = {way: time["median"] for way, time in result["times"]["torch.Tensor"].items()}
    return (
        f"Cython reads a tensor's size in {times['mirror']:.0f} ns through a mirror of its struct, in "
        f"{times['header']:.0f} ns through torch's header, in {times['attribute']:.0f} ns by the method and in "
        f"{times['function']:.0f} ns by the C shim."
    )


def tables(result: dict) -> list[Table]:
    """The tables of fields and of reads. Every object begins with what all Python objects have, 16 bytes."""
    fields = []
    for what, layout in result["layout"].items():
        fields += [[what, name, str(offset), str(size)] for name, offset, size in layout["fields"]]
        fields.append([what, "the whole object", "", str(layout["size"])])
    reads = {(what, way): f"{what}, {label}" for what in ways.OBJECTS for way, label in LABELS.items()}
    return [
        Table(("object", "field", "offset", "bytes"), fields, words=(0, 1)),
        table_of_calls("one read", result, reads, digits=1),
    ]


def sentences(result: dict) -> str:
    """How the ways compare, and what the compiler says."""
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
    return results.paragraphs(" ".join(parts), caught(result))


def caught(result: dict) -> str:
    """What the compiler says of mirrors that do not fit, if it was asked."""
    lines = [f"- {label}: {f'`{said}`' if said else 'compiles'}" for label, said in result["caught"].items()]
    return "\n".join(["What the compiler says of the mirrors:", "", *lines]) if lines else ""


def draw(result: dict, path: Path) -> None:
    """Plot the times of `result` into the file `path`."""
    figure = plots.figure(6.4)
    for axes, what in zip(figure.subplots(3, 1), ways.OBJECTS, strict=True):
        calls = [(label, result["times"][what][way], COLOURS[way]) for way, label in LABELS.items()]
        plots.bars_of_calls(axes, f"Reading a {what}", calls)
    plots.save(figure, path)
