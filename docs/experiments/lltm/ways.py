"""The forms of the cell, by the names that tables, plots and results call them."""

from interop.experiments import building

from .cell import Cell
from .cell_compiled import CompiledCell
from .cell_native import native_cell
from .cell_python import PythonCell

NAME = "lltm"
WAYS = ("Python", "torch.compile", "C++", "Cython", "Cython fused")
NATIVE = {"C++": "cell_cpp", "Cython": "cell_cython", "Cython fused": "cell_fused"}


def classes() -> dict[str, type[Cell]]:
    """The class of each way. The native ones must have been built."""
    found = {"Python": PythonCell, "torch.compile": CompiledCell}
    found |= {way: native_cell(building.native(NAME, module)) for way, module in NATIVE.items()}
    return {way: found[way] for way in WAYS}


def same_cells(features: int, state: int, **options) -> dict[str, Cell]:
    """A cell of each way, all with the same parameters."""
    cells = {way: cell(features, state, **options) for way, cell in classes().items()}
    for cell in cells.values():
        cell.load_state_dict(cells["Python"].state_dict())
    return cells
