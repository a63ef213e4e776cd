"""Finds the shapes of all calls that the samples make, and keeps them in a file."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opdb.capture import capture
from opdb.processes import in_processes
from opdb.samples import error_samples, samples, seeded
from opdb.shapes import NotDeclaredError, Shape, call_forms


def collect(operators: list[Any]) -> dict[str, Shape]:
    """The shapes of all calls that the samples make."""
    shapes: dict[str, Shape] = {}
    for found in in_processes(_collect, operators):
        shapes |= found
    return shapes


def _collect(operator: Any) -> dict[str, Shape]:
    shapes = {}
    for function in [*(function for _, function in samples(operator)), *error_samples(operator)]:
        for call in seeded(lambda function=function: capture(function)).calls:
            with contextlib.suppress(NotDeclaredError):  # the comparison counts these
                shapes |= {shape.key: shape for shape, _ in call_forms(call)}
    return shapes


def remembered(path: Path, key: Any, find: Callable[[], dict[str, Shape]]) -> dict[str, Shape]:
    """The shapes that `find` returns, from the file `path` if it was written for the same `key`."""
    try:
        record = json.loads(path.read_text())
        if record["key"] == key:
            rows = record["shapes"]
            return {row[0]: Shape(row[1], tuple(row[2]), tuple(row[3]), row[4], row[5]) for row in rows}
    except (OSError, ValueError, LookupError):
        pass
    shapes = find()
    rows = [(k, s.name, s.kinds, s.returns, s.receiver, s.overload) for k, s in shapes.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"key": key, "shapes": rows}))
    return shapes
