"""Use PyTorch tensors from Cython: ``cimport torch``, ``cimport ATen as at``.

Importing this package imports torch, checks that the compiled parts were built for it, and gives the names below.
"""

import importlib

import torch  # first: it loads the libraries that every compiled part is linked to

from interop import abi

try:
    from interop import _build_info
except ImportError as error:
    raise ImportError(
        "this is a checkout of torch-interop without its compiled half: leave this folder, or build it here with "
        "`make demo` or `pip install --no-build-isolation -e .`",
        name=__name__,
    ) from error

from interop.paths import get_include, get_pxd_dir

if _build_info.ABI != abi.NAME:
    raise ImportError(
        f"torch-interop was built for torch {_build_info.TORCH}, but torch {torch.__version__} is running. "
        "Rebuild it against the running torch: "
        "pip install --no-build-isolation --force-reinstall --no-deps torch-interop "
        "(in a checkout: ... --no-deps -e .), then rebuild the modules that cimport it.",
        name=__name__,
    )

__version__ = _build_info.VERSION

_WHERE = dict.fromkeys(("TensorBuffer", "as_memoryview", "from_buffer", "from_numpy", "to_numpy"), "interop._bridges")
_WHERE |= dict.fromkeys(("disable_buffer_protocol", "enable_buffer_protocol"), "interop.buffer_protocol")
_WHERE |= dict.fromkeys(("load", "load_inline"), "interop.jit")
_WHERE["load_ipython_extension"] = "interop.jit.magic"

__all__ = ["__version__", "get_include", "get_pxd_dir", *_WHERE]


def __getattr__(name):
    """`interop.cuda` and the converters, which are imported when they are asked for."""
    if name == "cuda":
        return importlib.import_module("interop.cuda")
    if name in _WHERE:
        found = globals()[name] = getattr(importlib.import_module(_WHERE[name]), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
