"""CUDA kernels that are compiled at run time from a string, and launched from Cython.

`compile` needs NVRTC, which comes with CUDA builds of torch; it needs no GPU. Cython code launches a kernel by `from
interop.cuda cimport Kernel`: see docs/cuda-nvrtc-guide.md.
"""

from interop.cuda.module import Kernel, Module, compile  # noqa: A004  called as in torch
from interop.cuda.nvrtc import CompileError

__all__ = ["CompileError", "Kernel", "Module", "compile"]
