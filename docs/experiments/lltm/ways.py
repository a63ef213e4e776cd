"""The forms of the cell, by the names that tables, plots and results call them."""

from experiments.harness import building

from .cell import Cell
from .cell_compiled import CompiledCell
from .cell_native import native_cell
from .cell_python import PythonCell
from .cell_registered import registered_cell

NAME = "lltm"
WAYS = ("Python", "torch.compile", "C++", "Cython", "Cython op", "Cython fused")


def classes() -> dict[str, type[Cell]]:
    """The class of each way. The native ones must have been built."""
    for module in ("cell_op", "cell_fused"):
        building.native(NAME, module)  # registers its operators
    cpp, cython = (native_cell(building.native(NAME, module)) for module in ("cell_cpp", "cell_cython"))
    found = (PythonCell, CompiledCell, cpp, cython, registered_cell("cell"), registered_cell("fused"))
    return dict(zip(WAYS, found, strict=True))


def same_cells(features: int, state: int, **options) -> dict[str, Cell]:
    """A cell of each way, all with the same parameters."""
    cells = {way: cell(features, state, **options) for way, cell in classes().items()}
    for cell in cells.values():
        cell.load_state_dict(cells["Python"].state_dict())
    return cells
