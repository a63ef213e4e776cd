"""A user's module for `mypy --strict`. The text after `# is` is the type that mypy must find."""

from typing import reveal_type

import numpy as np
import torch

import interop
from interop import build

x = interop.from_numpy(np.ones(3))
reveal_type(x)  # is torch._tensor.Tensor
reveal_type(interop.from_numpy(np.ones(3), on_readonly="copy"))  # is torch._tensor.Tensor
reveal_type(interop.to_numpy(x, readonly=True))  # is numpy.ndarray[
reveal_type(interop.from_buffer(b"abc", dtype=torch.uint8, shape=(3,), on_readonly="share"))  # is torch._tensor.Tensor
reveal_type(interop.as_memoryview(x))  # is memoryview[int]
reveal_type(interop.TensorBuffer(x).shape)  # is tuple[int, ...]
reveal_type(interop.from_dlpack(np.ones(3), device="cpu", copy=True))  # is torch._tensor.Tensor
reveal_type(interop.to_cuda_array_interface(x).__cuda_array_interface__)  # is dict[str,
interop.from_dlpack(interop.to_dlpack(x, max_version=(1, 0)))
memoryview(interop.TensorBuffer(x))
with interop.enable_buffer_protocol():
    pass
reveal_type(interop.get_include())  # is str
reveal_type(interop.__version__)  # is str
build.Extension("m", ["m.pyx"], include_dirs=["include"])
reveal_type(interop.cuda.Module)  # is def

# Mistakes, each an error.
interop.from_nmpy(np.ones(3))  # error: attr-defined
interop.from_numpy(np.ones(3), on_readonly="maybe")  # error: arg-type
interop.from_numpy([1.0, 2.0])  # error: arg-type
interop.to_numpy(np.ones(3))  # error: arg-type
interop.to_dlpack(x, max_version=1)  # error: arg-type
interop.as_memoryview(x, False)  # error: call-arg
