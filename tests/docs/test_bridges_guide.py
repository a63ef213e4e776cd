"""The code blocks of docs/bridges.md work as written."""

import array
import ast
import io

import numpy as np
import pytest
import scipy.optimize
import torch
from doc_blocks import of

import interop

PAGE = "docs/bridges.md"


@pytest.mark.usefixtures("jit_cache")
def test_blocks_of_python():
    """The statements run one by one, with the objects that the page leaves undefined."""
    first, second = of(PAGE, "python")
    names = {
        "array": np.arange(3, dtype=np.float32),
        "exporter": array.array("f", [1, 2]),
        "obj": np.arange(2),
        "compiled_for_numpy": interop.load_inline("def first(float[::1] x): return x[0]\n", name="typed").first,
        "file": io.BytesIO(),
        "lapx": scipy.optimize,
    }
    on_a_gpu = ("from_cuda_array_interface", "to_cuda_array_interface")
    for statement in ast.parse(first).body:
        code = compile(ast.Module([statement], []), PAGE, "exec")
        if any(name in ast.unparse(statement) for name in on_a_gpu):
            with pytest.raises(TypeError, match=r"GPU|cuda"):  # the data is on the CPU
                exec(code, names)
        else:
            exec(code, names)
    assert names["a"] is not names["array"]
    assert np.shares_memory(names["a"], names["array"])
    assert names["file"].getvalue() == names["array"].tobytes()
    pytest.importorskip(
        "dtaidistance.dtw_cc", reason="dtaidistance is not installed: pip install -r requirements/test.txt"
    )
    try:
        exec(compile(second, PAGE, "exec"), names | {"torch": torch})
    finally:
        interop.disable_buffer_protocol()


@pytest.mark.usefixtures("jit_cache")
def test_blocks_of_cython():
    """The blocks work in functions with the variables they use."""
    permuted, described = of(PAGE, "cython")
    functions = {
        "permuted(float[:, :, :, :] images)": (permuted, "channels_first.shape[1]"),
        "described(torch.Tensor tensor not None)": (described, "view.ndim"),
    }
    source = ["cimport torch"]
    for signature, (block, result) in functions.items():
        lines = block.splitlines()
        source += [line for line in lines if line.startswith("from ")]
        body = [line for line in lines if not line.startswith("from ")]
        source += [f"def {signature}:", *(f"    {line}" for line in body), f"    return {result}"]
    module = interop.load_inline("\n".join(source) + "\n", name="bridges_guide")
    assert module.permuted(np.zeros((1, 2, 3, 4), dtype=np.float32)) == 4
    assert module.described(torch.zeros(2, 3, 4)) == 3
