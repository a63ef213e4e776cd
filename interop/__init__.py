"""Use PyTorch tensors from Cython: ``cimport torch``, ``cimport ATen as at``.

Importing this package imports torch, checks that the compiled parts were built for it, and gives the names below.
"""

import importlib

from interop._startup import is_command  # first, because it decides where modules come from
from interop.errors import Error
from interop.paths import get_include, get_pxd_dir

if not is_command():
    from interop._compiled_half import __version__

# Where to import the other names from at their first use. Type checkers and editors read the block below instead.
_WHERE = dict.fromkeys(
    (
        *("TensorBuffer", "as_memoryview", "from_buffer", "from_numpy", "to_numpy"),
        *("from_cuda_array_interface", "from_dlpack", "to_cuda_array_interface", "to_dlpack"),
    ),
    "interop._bridges",
)
_WHERE |= dict.fromkeys(("from_array", "with_arrays"), "interop.arrays")
_WHERE |= dict.fromkeys(("disable_buffer_protocol", "enable_buffer_protocol"), "interop.buffer_protocol")
_WHERE |= dict.fromkeys(("load", "load_inline"), "interop.jit")
_WHERE |= dict.fromkeys(("load_ipython_extension", "unload_ipython_extension"), "interop.jit.magic")
_PACKAGES = ("build", "cuda", "testing")

__all__ = ["Error", "__version__", "get_include", "get_pxd_dir", *_WHERE]

TYPE_CHECKING = False  # type checkers take it for True; importing typing would slow commands down
if TYPE_CHECKING:
    from interop import build as build
    from interop import cuda as cuda
    from interop import testing as testing
    from interop._bridges import TensorBuffer as TensorBuffer
    from interop._bridges import as_memoryview as as_memoryview
    from interop._bridges import from_buffer as from_buffer
    from interop._bridges import from_cuda_array_interface as from_cuda_array_interface
    from interop._bridges import from_dlpack as from_dlpack
    from interop._bridges import from_numpy as from_numpy
    from interop._bridges import to_cuda_array_interface as to_cuda_array_interface
    from interop._bridges import to_dlpack as to_dlpack
    from interop._bridges import to_numpy as to_numpy
    from interop._compiled_half import __version__ as __version__
    from interop.arrays import from_array as from_array
    from interop.arrays import with_arrays as with_arrays
    from interop.buffer_protocol import disable_buffer_protocol as disable_buffer_protocol
    from interop.buffer_protocol import enable_buffer_protocol as enable_buffer_protocol
    from interop.jit import load as load
    from interop.jit import load_inline as load_inline
    from interop.jit.magic import load_ipython_extension as load_ipython_extension
    from interop.jit.magic import unload_ipython_extension as unload_ipython_extension
else:  # hidden from type checkers, which would accept every name

    def __getattr__(name):
        """Import the packages and the converters at their first use."""
        if name in _PACKAGES:
            return importlib.import_module(f"interop.{name}")
        if name == "__version__" or name in _WHERE:
            check = importlib.import_module("interop._compiled_half")
            found = check.__version__ if name == "__version__" else getattr(importlib.import_module(_WHERE[name]), name)
            globals()[name] = found
            return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted([*__all__, *_PACKAGES])
