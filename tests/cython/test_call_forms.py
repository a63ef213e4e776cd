"""Each call form compiles as written, with and without the GIL, and gives the same result as torch."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import leaves_daemon_threads, not_in_debug_python, owns_to_the_end
from hypothesis import given
from hypothesis import strategies as st
from projects.call_forms.table import CALL_FORMS
from torch.overrides import TorchFunctionMode

from interop.stable_abi import release_of

pytestmark = pytest.mark.native

WITH_STRING = re.compile(r"at\.(einsum|fft_fftn|quantile)\(")
TORCH_KEEPS_STRINGS = pytest.mark.unchecked(
    by="leaks", reason="torch's to<std::string> in stableivalue_conversions.h does not delete the string it makes"
)


@pytest.mark.parametrize("prefix", ["gil", "nogil"])
@pytest.mark.parametrize(
    "index",
    [
        pytest.param(i, id=form.cython, marks=[TORCH_KEEPS_STRINGS] if WITH_STRING.match(form.cython) else [])
        for i, form in enumerate(CALL_FORMS)
    ],
)
def test_call_form(call_forms, prefix, index):
    form = CALL_FORMS[index]
    if (prefix == "nogil" and form.needs_gil) or not (form.stable or call_forms.__name__ == "call_forms"):
        return  # the form takes a Python object, or this module lacks it
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    came = call_forms.any_of(f"{prefix}_{index}", x, y)
    expected = eval(CALL_FORMS[index].python, {"torch": torch, "x": x, "y": y})
    if isinstance(came, tuple):
        came, expected = list(came), list(expected)
    torch.testing.assert_close(came, expected, rtol=0, atol=0)
    if isinstance(came, torch.Tensor):
        assert came.stride() == expected.stride()


class Seen(TorchFunctionMode):
    """The functions that `__torch_function__` is asked about."""

    def __init__(self):
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


class TestPythonObjects:
    """Arguments whose type is known only at run time."""

    @given(shape=st.lists(st.integers(0, 5), max_size=4), kind=st.sampled_from([list, tuple, torch.Size]))
    def test_shapes(self, call_forms, shape, kind):
        assert call_forms.zeros(kind(shape)).shape == tuple(shape)

    @given(value=st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.complex_numbers()))
    def test_numbers(self, call_forms, value):
        for x in (torch.ones(2), torch.ones(2, dtype=torch.long), torch.tensor([True, False])):
            torch.testing.assert_close(call_forms.add(x, value), torch.add(x, value), rtol=0, atol=0, equal_nan=True)

    @pytest.mark.parametrize(
        "value", ["numpy.float32(1.5)", "numpy.int8(3)", "numpy.complex64(1j)", "numpy.float64(2)", "numpy.bool(True)"]
    )
    def test_numpy_numbers(self, call_forms, value):
        import numpy

        value = eval(value, {"numpy": numpy})
        torch.testing.assert_close(call_forms.add(torch.ones(2), value), torch.add(torch.ones(2), value.item()))

    def test_tensors_and_numbers_take_their_own_overloads(self, call_forms):
        x = torch.randn(3)
        assert call_forms.add(x, x).equal(x + x)
        assert call_forms.clamp(x, None, 0.1).equal(x.clamp(max=0.1))
        assert call_forms.clamp(x, x - 1, None).equal(x.clamp(min=x - 1))
        assert call_forms.sum(x, None).equal(x.sum())
        for dims in (0, (0,), [0], ()):
            assert call_forms.sum(x, dims).equal(x.sum(dims))
        assert call_forms.sum(x, torch.double).equal(x.sum(dtype=torch.double))

    def test_truth_values(self, call_forms):
        x = torch.randn(2, 3)
        for unbiased in (True, False, np.True_):
            assert call_forms.std(x, unbiased).equal(x.std(unbiased=bool(unbiased)))
        assert call_forms.std(x, [0]).equal(x.std([0]))

    def test_lists_of_tensors(self, call_forms):
        tensors = [torch.randn(2), torch.nn.Parameter(torch.randn(3))]
        assert call_forms.cat(tensors).equal(torch.cat(tensors))
        assert call_forms.cat(tuple(tensors)).equal(torch.cat(tensors))

    @pytest.mark.parametrize(
        "options",
        [torch.float16, float, bool, int, complex, torch.device("meta"), "meta", None, torch.strided],
    )
    def test_options(self, call_forms, options):
        names = {str: "device", torch.device: "device", torch.layout: "layout"}
        expected = torch.zeros(1, **{names.get(type(options), "dtype"): options})
        came = call_forms.to_options(options)
        assert (came.dtype, came.device) == (expected.dtype, expected.device)

    def test_a_memory_format(self, call_forms):
        assert call_forms.to_options(torch.contiguous_format).equal(torch.zeros(1))

    def test_tensors_as_numbers(self, call_forms):
        """As in torch, 0-d tensors that require no grad count as numbers."""
        x = torch.randn(2, 3)
        assert call_forms.sum(x, [torch.tensor(0)]).equal(x.sum(0))
        assert call_forms.full((2,), torch.tensor(1.5), None).equal(torch.full((2,), 1.5))
        assert call_forms.zeros((torch.tensor(2), 1)).shape == (2, 1)

    def test_a_number_in_a_tensor_that_a_mode_would_see(self, call_forms):
        """Calls of ATen do not reach `__torch_function__`, nor does a check of their arguments."""
        number = torch.tensor(1.5)
        with Seen() as mode:
            full = call_forms.full((2,), number, None)
        assert mode.seen == []
        assert full.tolist() == [1.5, 1.5]

    def test_without_the_gil(self, call_forms):
        x = torch.randn(2)
        z, a = call_forms.objects_without_gil(x, [2, 3], torch.int16, 3)
        assert (z.shape, z.dtype) == ((2, 3), torch.int16)
        assert a.equal(x + 3)

    @owns_to_the_end
    @leaves_daemon_threads
    @not_in_debug_python(reason="CPython itself reads the freed state of such a thread")
    @pytest.mark.long
    def test_a_thread_that_is_left_behind(self, call_forms):
        """A thread that requests the GIL after the interpreter has ended must not unwind through our frames."""
        code = (
            f"import threading, time, torch, {call_forms.__name__} as m; torch.set_num_threads(1)\n"
            "threading.Thread(target=m.forever, args=(torch.ones(2), 3), daemon=True).start()\n"
            "time.sleep(0.2)"
        )
        environment = os.environ | {"PYTHONPATH": os.path.dirname(call_forms.__file__)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100
        )
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize(
        ("name", "arguments", "error", "message"),
        [
            ("zeros", ("23",), TypeError, r"at.zeros\(\): argument 'size' must be a sequence of int, got str"),
            ("zeros", ((2, 1.5),), TypeError, r"at.zeros\(\): argument 'size' must be an int, got float"),
            ("zeros", ((2**70,),), OverflowError, rf"at.zeros\(\): argument 'size' must be an int .* got {2**70}"),
            ("zeros", ((10**5000,),), OverflowError, "from .* 2.*, got an int of thousands of digits"),
            ("zeros", ((10**300,),), OverflowError, rf"must be an int from .*, got 1{'0' * 49}\.\.\.$"),
            ("zeros", ((torch.ones(2),),), TypeError, r"at.zeros\(\): argument 'size' must be an int, got Tensor"),
            ("zeros", ((np.ones(2),),), TypeError, r"at.zeros\(\): argument 'size' must be an int, got numpy.ndarray"),
            ("zeros", ((-1,),), RuntimeError, "must be non-negative"),
            (
                "view",
                (torch.ones(2), {}),
                TypeError,
                r"view\(\): got \(Tensor, dict\), accepted are: view\(",
            ),
            ("sum", (torch.ones(2), "dim"), TypeError, r"at.sum\(\): got \(Tensor, str\), accepted are: sum\(Tensor"),
            ("zeros", (True,), TypeError, "must be an int, got bool"),
            ("zeros", ([True],), TypeError, "must be an int, got bool"),
            ("zeros", (bytearray(2),), TypeError, "must be a sequence of int, got bytearray"),
            ("full", ((1,), torch.tensor(1.5, requires_grad=True), None), TypeError, "that does not require grad"),
            ("full", ((1,), torch.tensor([1.5]), None), TypeError, "a tensor without dimensions"),
            ("add", (torch.ones(2), "1"), TypeError, r"at.add\(\): got \(Tensor, str\), accepted are"),
            ("add", (torch.ones(2), 2**64), OverflowError, rf"'other' must be a number from .* got {2**64}"),
            ("add", (torch.ones(2), -(2**80)), OverflowError, rf"at.add\(\): argument 'other' .* got {-(2**80)}"),
            ("cat", ([torch.ones(2), 3],), TypeError, "argument 'tensors' must be a torch.Tensor, got int"),
            ("cat", (torch.ones(2),), TypeError, "argument 'tensors' must be a sequence of torch.Tensor, got Tensor"),
            ("full", ((2,), "x", None), TypeError, "argument 'fill_value' must be a number, got str"),
            ("std_of_columns", (torch.ones(2), "yes"), TypeError, r"got \(Tensor, int\[\], str\), accepted are"),
            ("std", (torch.ones(2), "yes"), TypeError, r"at.std\(\): got \(Tensor, str\), accepted are"),
            ("full", ((2,), 1, 2), TypeError, "argument 'options' must be a torch.dtype, torch.device"),
            ("to_options", ("nonsense",), RuntimeError, "nonsense"),
            (
                "rounded",
                (torch.ones(2), 3),
                TypeError,
                r"div\(\): got \(Tensor, float, int\), accepted are: div",
            ),
            ("rounded", (torch.ones(2), "up"), RuntimeError, "rounding_mode"),
        ],
    )
    def test_wrong_ones(self, call_forms, name, arguments, error, message):
        if error is RuntimeError and call_forms.__name__ != "call_forms" and release_of(torch.__version__) < (2, 13):
            message += "|its releases before 2.13 cannot hand it on"  # to stable modules
        with pytest.raises(error, match=message):
            getattr(call_forms, name)(*arguments)

    def test_an_error_inside_a_list(self, call_forms):
        class Bad:
            def __index__(self):
                raise KeyError("from __index__")

        with pytest.raises(KeyError, match="from __index__"):
            call_forms.zeros([1, Bad()])

    def test_a_list_that_changes_while_it_is_read_is_taken_as_it_was(self, call_forms):
        class Shrinks:
            def __index__(self):
                shape.clear()
                return 2

        shape = [Shrinks(), 3, 4]
        assert call_forms.zeros(shape).shape == (2, 3, 4)
