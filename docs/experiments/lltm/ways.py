"""The three forms of the cell, by the names that tables, plots and results call them."""

from interop.experiments import building

from .cell import Cell
from .cell_native import native_cell
from .cell_python import PythonCell

NAME = "lltm"
WAYS = ("Python", "C++", "Cython")


def classes() -> dict[str, type[Cell]]:
    """The class of each way. The compiled two must have been built."""
    cpp, cython = (native_cell(building.native(NAME, module)) for module in ("cell_cpp", "cell_cython"))
    return dict(zip(WAYS, (PythonCell, cpp, cython), strict=True))


def same_cells(features: int, state: int, **options) -> dict[str, Cell]:
    """A cell of each way, all with the same parameters."""
    cells = {way: cell(features, state, **options) for way, cell in classes().items()}
    for cell in cells.values():
        cell.load_state_dict(cells["Python"].state_dict())
    return cells
