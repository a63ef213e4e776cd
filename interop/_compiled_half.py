"""Import torch, and raise ImportError unless the compiled parts of this package were built for it."""

from interop.garbage_collection import without_collections

with without_collections():  # which would take a fifth of the time
    import torch  # first: it loads the libraries that every compiled part is linked to

from interop import abi

__all__ = ["__version__"]

try:
    from interop import _build_info
except ImportError as error:
    raise ImportError(
        "this is the source folder of torch-interop, without its compiled half: leave this folder, or build it here "
        "with `pip install --no-build-isolation -e .`",
        name="interop",
    ) from error

if _build_info.ABI != abi.NAME:
    raise ImportError(
        f"torch-interop was built for torch {_build_info.TORCH}, but torch {torch.__version__} is running. "
        "Rebuild it against the running torch: "
        "pip install --no-build-isolation --force-reinstall --no-deps . "
        "in its checkout (with -e if it was installed with -e), then rebuild the modules that cimport it.",
        name="interop",
    )

__version__: str = _build_info.VERSION
