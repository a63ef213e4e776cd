"""The forms of the cell, by the names that tables, plots and results call them."""

from collections.abc import Sequence

from experiments.harness import building

from .cell import Cell
from .cell_native import native_cell
from .cell_python import PythonCell
from .cell_registered import registered_cell

NAME = "lltm"
WAYS = ("Python", "torch.compile", "C++", "Cython", "Cython op", "Cython fused")

MODULES = {"C++": "cell_cpp", "Cython": "cell_cython", "Cython op": "cell_op", "Cython fused": "cell_fused"}
"""The compiled ones, and the module of each."""

OPERATORS = {"Cython op": "cell", "Cython fused": "fused"}
"""Those that are operators of torch, as ``torch.ops.lltm.NAME``."""


def classes(wanted: Sequence[str] = WAYS) -> dict[str, type[Cell]]:
    """The class of each way that is `wanted`. The modules of these, see `MODULES`, must have been built."""
    return {way: _class(way) for way in wanted}


def _class(way: str) -> type[Cell]:
    if way == "Python":
        return PythonCell
    if way == "torch.compile":
        from .cell_compiled import CompiledCell  # here, because it imports torch's compiler, which takes seconds

        return CompiledCell
    module = building.native(NAME, MODULES[way])  # which registers its operator, if it has one
    return registered_cell(OPERATORS[way]) if way in OPERATORS else native_cell(module)


def same_cells(features: int, state: int, wanted: Sequence[str] = WAYS, **options) -> dict[str, Cell]:
    """A cell of each way that is `wanted`, all with the same parameters."""
    cells = {way: cell(features, state, **options) for way, cell in classes(wanted).items()}
    for cell in cells.values():
        cell.load_state_dict(cells["Python"].state_dict())
    return cells
