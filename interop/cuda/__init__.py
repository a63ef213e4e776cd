"""CUDA kernels that are compiled at run time, out of a string, and launched from Cython.

`compile` needs NVRTC, which CUDA builds of torch bring along; it does not need a GPU. What launches is
`from interop.cuda cimport Kernel`: see docs/cuda-nvrtc-guide.md.
"""

from interop.cuda.module import Kernel, Module, compile  # noqa: A004  called as in torch
from interop.cuda.nvrtc import CompileError

__all__ = ["CompileError", "Kernel", "Module", "compile"]
