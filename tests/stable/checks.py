"""``python checks.py FOLDER [CALLS]``: check the modules of tests/projects/stable in FOLDER with the running torch.

It needs nothing but torch, so it can test the very same files in any environment. Prints a line of JSON.
"""

import gc
import json
import math
import os
import platform
import resource
import sys
import traceback
import warnings
import weakref
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode


@contextmanager
def several_threads():
    """torch computes on two threads, even if it was told to use one. Then a loop has two parts."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def raises(kind, part=""):
    """The block must raise this kind of error, with this text in its message. Yields a list, to which it is added."""
    found = []
    try:
        yield found
    except Exception as error:
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if (type(error) not in kinds and kind is not Exception) or part not in str(error):
            raise
        found.append(error)
    else:
        raise AssertionError(f"no {kind} was raised")


class Liar:
    """Claims to be a tensor, and isinstance() believes it."""

    __class__ = torch.Tensor


def has_texts():
    """Whether this torch's C interface passes on the text of an error."""
    return tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)


def check_python_objects(m, o):
    x = torch.randn(3, 4)
    assert m.numel(x) == m.numel_of_any(x) == 12
    assert m.same(x) is x
    assert m.kept(x) is x
    parameter = torch.nn.Parameter(x)
    assert m.same(parameter) is parameter
    assert m.undefined() == (False, None)
    named = "torch.Tensor" if ".abi3." in m.__file__ else "Tensor"  # by Cython, which names the module for one of both
    for wrong in (None, 3, "x", [x], Liar()):
        with raises(TypeError, named):
            m.numel(wrong)
        with raises(TypeError, "torch.Tensor"):
            m.numel_of_any(wrong)
    with raises(TypeError, "undefined"):
        m.numel_of_undefined()
    with raises(TypeError):
        m.Cell(3)
    cell = m.Cell(torch.randn(5, 4))
    assert cell.forward(x).shape == (3, 5)


def check_containers_own_what_they_are_constructed_of(m, o):
    for how in ("vector", "optional", "heap"):
        x = torch.ones(2)
        alive = weakref.ref(x)
        m.hold(x, how)
        del x
        assert alive() is not None
        m.let_go()
        assert alive() is None


def check_enums_of_any_number(m, o):
    assert m.layout_and_memory_format(0, 0) == (torch.strided, torch.contiguous_format)
    for wrong in ((99, 0), (-1, 0), (0, 99), (0, -1)):
        with raises(ValueError, "is not one that this module knows"):
            m.layout_and_memory_format(*wrong)


def check_contiguous(m, o):
    """As in ATen, a tensor whose memory is in this order already is given back, and any other is copied."""
    x, images = torch.randn(3, 4), torch.randn(2, 3, 4, 5)
    last = images.to(memory_format=torch.channels_last)
    for tensor, same in ((x, True), (x.t(), False), (x[:, 1:], False), (torch.empty(0), True), (x.to("meta"), True)):
        result, _ = m.contiguous(tensor)
        assert (result is tensor) == same
        assert result.is_contiguous()
        assert result.is_meta or torch.equal(result, tensor)
    for tensor in (images, last):
        results = m.contiguous(tensor)
        assert [result is tensor for result in results] == [tensor is images, tensor is last]
        assert results[1].is_contiguous(memory_format=torch.channels_last)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such tensors are in beta state
        sparse = torch.eye(3).to_sparse_csr()
    with raises(Exception) as theirs:
        sparse.contiguous()
    with raises(type(theirs[0]), str(theirs[0]) if has_texts() else ""):
        m.contiguous(sparse)


NAMES = ("uint8", "int8", "int16", "uint32", "int32", "uint64", "int64", "bool", "float32", "float64")
EDGES = [s * (2**n + d) for n in (0, 7, 8, 15, 16, 31, 32, 53, 62) for d in (-1, 0, 1) for s in (1, -1)]
TWICE = [2**54 + 2**30 + 1, -(2**54) - 2**30 - 1, 2**62 + 2**38 + 1]  # rounded to double first, the float is another
FLOATS = [
    0.5, 127.5, -128.5, 255.7, -0.5, 2.0**31 - 0.5, 2.0**32 - 0.5, 2.0**63 - 1024, -(2.0**63), -(2.0**63) - 2048,
    3.4028234663852886e38, 3.5e38, 1e300, math.inf, math.nan,
]  # fmt: skip


def is_cut_off(number, name):
    """Whether it is a float that fits after its fraction is cut off; fill_() raises before torch 2.15."""
    dtype = getattr(torch, name)
    if isinstance(number, int) or dtype.is_floating_point or dtype is torch.bool:
        return False
    return torch.iinfo(dtype).max < number < torch.iinfo(dtype).max + 1


def check_conversions_of_numbers(m, o):
    """As torch converts them in fill_()."""
    for number in [*EDGES, *TWICE, 2**63 - 1, -(2**63), *map(float, EDGES), *FLOATS, *(-one for one in FLOATS)]:
        for name in NAMES:
            if (number, name) in ((2.0**63, "int64"), (2.0**64, "uint64")) and isinstance(number, float):
                continue  # torch's result is undefined
            if is_cut_off(number, name):
                assert m.converted(number, name) == math.floor(number)
                continue
            try:
                expected = torch.empty((), dtype=getattr(torch, name)).fill_(number).item()
            except RuntimeError:
                with raises(RuntimeError, "overflow"):
                    m.converted(number, name)
            else:
                found = m.converted(number, name)
                assert type(found) is type(expected), (number, name)
                assert found == expected or (found != found and expected != expected), (number, name, found)
    # torch's functions take no such int from Python
    assert m.converted(2**63, "uint64") == 2**63
    assert m.converted(2**63 + 2**39 + 1, "float32") == 2.0**63 + 2.0**40
    for number, name in ((2.0**63, "int64"), (2.0**64, "uint64"), (-(2.0**64), "int64"), (2**63, "int64")):
        with raises(RuntimeError, "overflow"):
            m.converted(number, name)


def check_liars(m, o):
    """An object that claims to be a tensor raises TypeError wherever this package meets it, and is never read."""
    x = torch.ones(2)
    for call in (
        partial(m.cat, [x, Liar()]),
        partial(m.cat, Liar()),
        partial(m.zeros, Liar(), None),
        partial(m.zeros, (2, 3), Liar()),
        partial(m.linear, x, Liar()),
        partial(m.Cell, Liar()),
        partial(m.Cell(x).forward, Liar()),
    ):
        with raises(TypeError, "Liar"):
            call()


def check_metadata(m, o):
    tensors = [
        torch.zeros(()),
        torch.zeros(0, 3),
        torch.arange(24).reshape(2, 3, 4).transpose(0, 2)[1:],
        torch.ones(2, dtype=torch.complex64),
        torch.ones(2, dtype=torch.bfloat16, requires_grad=True),
        torch.zeros(2, 3, device="meta"),
        torch.ones(2, 2).to_sparse(),
        *(torch.ones(1).to(getattr(torch, name)) for name in ("bool", "uint8", "int8", "int16", "int32", "float16")),
        *(torch.ones(1).to(getattr(torch, name)) for name in ("uint16", "uint32", "uint64", "float8_e4m3fn")),
    ]
    for x in tensors:
        if x.layout != torch.strided:
            assert m.numel(x) == x.numel()
            continue
        found = m.metadata(x)
        assert found.pop("is_same")
        assert tuple(found.pop("shape")) == x.shape
        assert tuple(found.pop("stride")) == x.stride()
        for name, value in found.items():
            expected = getattr(x, name)
            assert value == (expected() if callable(expected) else expected), (name, value, x)
        if not x.is_meta:
            assert m.addresses(x) == (x.data_ptr(), x.data_ptr())
    x = torch.ones(2, 3)
    assert m.size(x, -1) == (3, 1)
    with raises(IndexError if has_texts() else RuntimeError):
        m.size(x, 2)
    with raises(RuntimeError, "expected scalar type Double but found Float"):
        m.address_of_doubles(x)
    assert m.item(torch.tensor(3)) == 3
    assert m.number_in(torch.tensor(3)) == (True, 3)
    assert m.number_in(torch.tensor(1.5)) == (False, 1.5)


def check_aten(m, o):
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    assert m.relu(x).equal(x.relu())
    assert m.without_the_gil(x).equal(x * (x + x))
    assert all(a.equal(b) for a, b in zip(m.sums(x), (x.sum((0, 1), True), x.sum(0), x.sum()), strict=True))
    assert all(a.equal(b) for a, b in zip(m.biggest(x, 1), x.max(1), strict=True))
    counts, edges = m.histogram(x)
    expected = torch.histogramdd(x, [2] * x.shape[1])
    assert counts.equal(expected.hist)
    assert all(a.equal(b) for a, b in zip(edges, expected.bin_edges, strict=True))
    for options in (torch.float64, "cpu", None, torch.device("meta"), int):
        expected = torch.zeros(2, 3, **({"device": options} if isinstance(options, (str, torch.device)) else {}))
        expected = torch.zeros(2, 3, dtype=options) if options in (torch.float64, int) else expected
        came = m.zeros((2, 3), options)
        assert (came.shape, came.dtype, came.device) == (expected.shape, expected.dtype, expected.device)
    w, b = torch.randn(5, 4, requires_grad=True), torch.randn(5)
    assert m.linear(x, w).equal(torch.nn.functional.linear(x, w))
    assert m.linear(x, w, b).equal(torch.nn.functional.linear(x, w, b))
    m.linear(x, w).sum().backward()
    assert w.grad is not None
    z = x.clone()
    assert m.change(z) is z
    assert z.equal((x + 1).relu())
    assert m.cat([x, y]).equal(torch.cat([x, y]))
    assert [part.shape for part in m.split(torch.zeros(5, 2))] == [(2, 2), (2, 2), (1, 2)]
    i = torch.tensor([2, 0])
    assert all(a.equal(b) for a, b in zip(m.index(x, i), (x[0], x[i]), strict=True))
    expected = (x**2, torch.where(x > 0, x, y), x % y, x + y)
    assert all(mine.equal(its) for mine, its in zip(m.of_fields(x, y), expected, strict=True))
    assert m.result_type(torch.ones(2, dtype=torch.int32)) is torch.result_type(torch.ones(2, dtype=torch.int32), 2.5)
    assert m.undefined_requires_grad() is False
    with several_threads(), raises((RuntimeError, ValueError), "At least one of 'min' or 'max' must not be None"):
        m.fail_in_torch_on_a_thread(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such tensors are in beta state
        sparse = torch.eye(3).to_sparse_csr()
    assert m.arithmetic_of_sparse(sparse).to_dense().equal(2 * torch.eye(3))
    assert not m.without_gradients(w).requires_grad
    assert torch.is_grad_enabled()
    for a in (x, x.double(), x.half(), torch.arange(4), torch.tensor(2), torch.tensor(2.5), x.to(torch.complex64)):
        for c in (a, a[..., None].squeeze(-1) + 1):
            expected = (a + c, a - c, a * c, a + 2, a - 1.5, a * 2, 2 * a, 1 - a, 1.5 + a)
            for mine, its in zip(m.arithmetic(a, c), expected, strict=True):
                assert mine.dtype == its.dtype
                assert mine.equal(its), (a, c, mine, its)
    with raises(IndexError if has_texts() else RuntimeError):
        m.biggest(x, 7)
    with raises(TypeError, "must be a sequence of int, got dict"):
        m.zeros({}, None)
    assert list(m.squares(4)) == [0, 1, 4, 9]


def check_numbers_beside_other_kinds_of_tensors(m, o):
    """Some of them accept a number and no tensor of no dimensions. Then there is an error, and never another result."""
    with FakeTensorMode():
        fake = torch.ones(3, 4)
        assert type(m.with_number(fake, 2.5, "mul")) is type(fake)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such tensors are in beta state
        masked = torch.masked.masked_tensor(torch.arange(3.0), torch.arange(3) > 0)
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        for x in (fake, masked, nested):
            for name in ("add", "sub", "mul", "div", "gt"):
                try:
                    found = m.with_number(x, 2.5, name)
                except (AssertionError, NotImplementedError, RuntimeError, ValueError):
                    continue
                expected = getattr(torch, name)(x, 2.5)
                assert type(found) is type(expected), name
                assert str(found) == str(expected), name


class Interrupted(TorchDispatchMode):
    """Raises what Ctrl-C raises, and counts the calls."""

    calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.name() == "aten::scalar_tensor":
            return function(*args, **(kwargs or {}))
        self.calls += 1
        raise KeyboardInterrupt


def check_an_interrupt_is_not_lost(m, o):
    for name in ("add", "sub", "mul", "div", "gt"):
        with Interrupted() as mode:
            found = None
            try:
                m.with_number(torch.ones(2), 2.5, name)
            except BaseException as error:
                found = error
        assert found is not None, name
        assert type(found) is KeyboardInterrupt or not has_texts() or "KeyboardInterrupt" in str(found), name
        assert mode.calls == 1


def check_loops_and_memory(m, o):
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(200, 300, dtype=dtype)
        y = x.clone()
        with several_threads():
            assert m.double_(y) is y
        assert y.equal(x * 2)
    with raises(NotImplementedError, "\"double_\" not implemented for 'Half', only for Float, Double"):
        m.double_(torch.ones(2).half())
    for dtype in (torch.float32, torch.int16, torch.bfloat16):
        for how, reduced in enumerate((torch.sum, torch.amax)):
            x = torch.randint(0, 9, (5000, 3)).to(dtype)
            expected = reduced(x, 1).to(dtype)
            with several_threads():
                assert m.row_sums_(x, how)[:, 0].equal(expected)
    with raises(NotImplementedError, "\"row_sums_\" not implemented for 'Bool', only for Byte, Char"):
        m.row_sums_(torch.ones(3, dtype=torch.bool), 0)
    with raises(ValueError, '"row_sums_": choice must be from 0 to 1, got 2'):
        m.row_sums_(torch.ones(3), 2)
    with several_threads(), raises(KeyError, "from a thread"):
        m.fail_in_a_loop()
    doubles = torch.arange(5.0).double()
    assert m.total(doubles) == m.total_of_constants(doubles) == 10
    before = m.deletions()
    blob = m.counted_up(5)
    part = blob[1:]
    del blob
    assert part.tolist() == [1, 2, 3, 4]
    assert m.deletions() == before
    del part
    assert m.deletions() == before + 1
    assert m.blob_of_nothing((0, 3)).shape == (0, 3)
    assert m.deletions() == before + 2
    with raises(ValueError, "from_blob(): argument 'data' must not be null"):
        m.blob_of_nothing((1,))
    assert m.deletions() == before + 2
    for sizes in ((-1,), (2**40, 2**40)):
        with raises(ValueError, "from_blob(): argument 'sizes'"):
            m.blob_of_sizes(sizes)
    assert m.on_its_device(torch.ones(2)) == 0


def check_options(m, o):
    """A tensor that is made requires grad if the options say so, as in torch. A conversion rejects that, as in ATen."""
    x = torch.ones(4)
    for made in m.made_with_gradients(x):
        assert made.requires_grad
        assert made.is_leaf
        assert made.dtype is torch.float64
    assert not x.requires_grad
    with raises(RuntimeError, "cannot take a TensorOptions with options.requires_grad"):
        m.converted_with_gradients(x)


def check_errors_of_kernels(m, o):
    """Python gets what a kernel raised: the class, the whole message and the traceback."""
    failing = torch.ops.stable_operators.failing
    for which, kind in enumerate(o.ERRORS):
        with raises(kind) as found:
            failing(which)
        assert found[0].args == (o.MESSAGE,)
        places = [entry.name for entry in traceback.extract_tb(found[0].__traceback__)]
        assert "stable_operators.failing" in places, places
    with raises(ValueError if has_texts() else RuntimeError):
        failing(-1)
    with raises(IndexError if has_texts() else RuntimeError):
        failing(-5)


def check_errors_that_are_handled(m, o):
    """An error that a kernel or a part of a loop handles is no error of it, and later calls do not see it."""
    x = torch.ones(2)
    assert torch.ops.stable_operators.handling(x).tolist() == [-1, -1]
    with several_threads():
        m.handle_in_a_loop(x)
    assert torch.ops.stable_operators.handling(x).tolist() == [-1, -1]


def check_changes_of_arguments(m, o):
    """An operator that writes to the memory of an argument counts the change, as its schema says, so gradients fail."""
    double = torch.ops.stable_operators.double_in_memory
    x, first, last = (torch.ones(3, dtype=torch.float64) for _ in range(3))
    double(x, others=[])
    double(x, others=[first, last])
    assert (x.tolist(), first.tolist()) == ([4, 4, 4], [0, 1, 1])
    assert [one._version for one in (x, first, last)] == [2, 1, 1]
    y = x.clone().requires_grad_().exp()
    double(y, others=[])
    with raises(RuntimeError, "modified by an inplace operation"):
        y.sum().backward()
    with raises(RuntimeError, "of the keys"):
        torch.ops.stable_operators.fail_after_a_change(first, keys=last)
    assert (first.tolist(), first._version, last._version) == ([2, 1, 1], 2, 1)
    with torch.library._scoped_library("stable_operators", "FRAGMENT") as library:
        torch.library.register_fake("stable_operators::double_in_memory", lambda x, *, others: None, lib=library)
        compiled = torch.compile(lambda x: double(x, others=[]) or x + 1, fullgraph=True, backend="aot_eager")
        x = torch.ones(3, dtype=torch.float64)
        assert compiled(x).tolist() == [3, 3, 3]
    assert x.tolist() == [2, 2, 2]
    assert x._version
    with torch.inference_mode():
        z = torch.ones(3, dtype=torch.float64)
        double(z, others=[])
    double(z, others=[])
    assert z.tolist() == [4, 4, 4]


class Failing(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        raise KeyError(MESSAGE)


MESSAGE = "first line\n\nlast line"


def check_errors_of_torch(m, o):
    """Cython gets the class of an error of torch's by its text, and the whole text."""
    x, sparse = torch.ones(3, 4), torch.eye(3).to_sparse()
    for kind, part, call in (
        (ValueError, "torch.cat(): expected a non-empty list of Tensors", partial(m.cat, [])),
        (IndexError, "index 7 is out of bounds for dimension 0 with size 3", partial(m.index, x, torch.tensor([7]))),
        (IndexError, "Dimension out of range", partial(m.biggest, x, 7)),
        (NotImplementedError, "Could not run 'aten::max.dim'", partial(m.biggest, sparse, 1)),
        (RuntimeError, "mat1 and mat2 shapes cannot be multiplied", partial(m.linear, x, torch.ones(2, 2))),
    ):
        with raises(kind if has_texts() else RuntimeError, part if has_texts() else "") as found:
            call()
        assert "\n" not in str(found[0])
    with Failing(), raises(KeyError) as found:  # its error is still set when torch returns
        m.relu(x)
    assert found[0].args == (MESSAGE,)

    def fail(x):
        raise [ValueError, LookupError][x.dim()](MESSAGE)

    with torch.library._scoped_library("aten", "IMPL") as library, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it replaces a kernel of torch's
        library.impl("relu", fail, "CPU")
        with raises(ValueError if has_texts() else RuntimeError) as found:
            m.relu(torch.tensor(1.0))
        assert not has_texts() or found[0].args == (MESSAGE,)
        with raises(RuntimeError) as found:
            m.relu(torch.ones(1))
        assert not has_texts() or str(found[0]).startswith(f"LookupError: {MESSAGE}")


def check_classes_of_texts(m, o):
    """What torch raises in Python, its text tells in Cython."""
    aten, x, i = torch.ops.aten, torch.randn(3, 4), torch.tensor([7])
    mask, singular = torch.ones(2, dtype=torch.bool), torch.zeros(2, 2)
    for name, *arguments in (
        ("select", x, 0, 7), ("index", x, [i]), ("index_put", x, [i], x[0]), ("gather", x, 0, torch.full((3, 4), 7)),
        ("index", torch.tensor(1.0), [i, i]), ("index", x, [mask]), ("index", x, [torch.ones(2)]),
        ("index", x, [i.new_tensor([0, 1]), i.new_tensor([0, 1, 2])]), ("index_select", x, 0, i), ("take", x, 10 * i),
        ("embedding", x, i), ("index_add", x, 0, i, x[:1]),
        ("index_copy", x, 0, i, x[:1]), ("index_fill", x, 0, i, 1.0), ("_unsafe_index", x, [i]),
        ("_index_put_impl_", x, [i], x[0]), ("cholesky", singular), ("cholesky_inverse", singular),
        ("scatter", x, 0, torch.full((3, 4), 7), x),
        ("cat", []), ("stack", []), ("unbind", x, 5), ("narrow", x, 0, 9, 1), ("flip", x, [9]), ("split", x, -1),
        ("max", torch.zeros(0, 3), 0), ("max", torch.zeros(0)), ("argmax", torch.zeros(0)),
        ("roll", torch.tensor(1), [1], [0]), ("nll_loss", x, i.new_tensor([0, 1, 9])), ("topk", x, 99), ("mm", x, x),
        ("bitwise_and", x, x), ("nonzero", x.to("meta")), ("_fft_c2c", torch.eye(3).to_sparse(), [0], 0, True),
        ("linalg_cholesky", singular), ("linalg_inv", singular), ("linalg_solve", singular, torch.ones(2)),
        ("empty", [-1]), ("view", x, [5]), ("item", x), ("conv2d", x, x), ("clamp", x, None, None),
    ):  # fmt: skip
        if not hasattr(aten, name):  # cholesky, from torch 2.15 on
            continue
        with raises(Exception) as found:
            getattr(aten, name)(*arguments)
        theirs = found[0]
        with raises(type(theirs)) as found:
            m.raise_as_from_torch(str(theirs), f"aten::{name}")
        assert str(found[0]) == (str(theirs).partition("\n")[0] if "Could not run" in str(theirs) else str(theirs))
    with raises(MemoryError):
        m.raise_as_from_torch("std::bad_alloc", "aten::split")
    for device in ("CUDA", "XPU"):
        with raises(torch.OutOfMemoryError):
            m.raise_as_from_torch(f"{device} out of memory. Tried to allocate 2.00 GiB.", "aten::empty")
    with raises(RuntimeError, "the first line\nand the second"):
        m.raise_as_from_torch("the first line\nand the second", "aten::mine")


def check_operators(m, o):
    mm = torch.ops.stable_operators.scaled_mm
    a = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
    b = torch.randn(4, 5, dtype=torch.double, requires_grad=True)
    torch.testing.assert_close(mm(a, b, 2.0), 2 * (a @ b))
    assert torch.autograd.gradcheck(lambda a, b: mm(a, b, 2.0), (a, b))
    results = torch.library.opcheck(mm.default, (a, b, 2.0))
    assert set(results.values()) == {"SUCCESS"}, results
    compiled = torch.compile(lambda a, b: mm(a, b, 3.0) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(a, b), 3 * (a @ b) + 1)
    exported = torch.export.export(Model(), (a.detach(), b.detach())).module()
    torch.testing.assert_close(exported(a, b), 2 * (a @ b))
    for call in (mm, torch.compile(mm, fullgraph=True, backend="aot_eager")):
        with raises(ValueError, "s must not be negative"):
            call(a.detach(), b.detach(), -1.0)
    with raises(ValueError, "s must not be negative"):
        mm(a, b, -1.0)  # on the way through the registered gradient
    all_types = torch.ops.stable_operators.all_types
    x = torch.ones(3)
    total, number = all_types([x, x], 2.5, "abc", True, [1, 2], x, torch.float64, 0)
    assert total.equal(torch.full((3,), -3.0, dtype=torch.float64))
    assert number == 7
    total, number = all_types([x], None, "", False, [], None, torch.int32, -5)
    assert total.equal(torch.ones(3, dtype=torch.int32))
    assert number == -5
    with raises(ValueError, "does not fit into the kernel's C type"):
        all_types([x], None, "", False, [], None, torch.int32, 2**40)
    folded = torch.ops.stable_operators.folded
    assert (folded([1, 2, 3, 4], None), folded([1, 2], [3]), folded([], [])) == (1234, 123, 0)
    narrowed = torch.ops.stable_operators.narrowed
    assert narrowed(1, x, [1.5, 2.0], [3, -4], 5) == 8.5
    for wrong in ((2**40, x, [], [], None), (1, x, [], [2**40], None), (1, x, [], [], 2**40)):
        with raises(ValueError, "does not fit into the kernel's C type"):
            narrowed(*wrong)
    assert torch.ops.stable_operators.has_bit(256) is True
    bits, bit = torch.ops.stable_operators.bits, torch.ops.stable_operators.bit
    assert bits(0b10_0000_0101) == [bool(0b10_0000_0101 & 1 << i) for i in range(12)]
    assert [type(one) for one in bits(-1)] == [bool] * 12
    assert (bit(512, 9), bit(512, 8), bit(512, 12)) == (True, False, None)
    numbers = torch.ops.stable_operators.unsigned_numbers
    assert (numbers([5, 2**62]), numbers([])) == (([5, 2**62], 5), ([], None))
    with raises(ValueError, "does not fit into an int64"):
        numbers([3, -1])
    y = torch.ones(3)
    alive = weakref.ref(y)
    with raises(ValueError, "does not fit into an int64"):
        torch.ops.stable_operators.counted(y, -1)  # after the tensor has been passed on
    del y
    gc.collect()  # the error holds the frames, and they hold it
    assert alive() is None
    with raises(TypeError, "the kernel does not return what the schema says"):
        o.wrong_results()
    torch.ops.stable_operators.add_one(x)
    assert x.equal(torch.full((3,), 2.0))
    with raises(TypeError, "the schema has 3 arguments, and the kernel 1 parameters"):
        o.wrong_number_of_parameters()
    with raises(TypeError, "argument 1 is Tensor in the schema, and int in the kernel"):
        o.wrong_type_of_a_parameter()
    with raises(ValueError, "argument 'name' must be 'namespace::name', got 'add_one'"):
        o.wrong_name()


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.ops.stable_operators.scaled_mm(a, b, 2.0)


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]


def resident():
    """The resident memory of this process in KiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


def calls_of_each(m):
    """Calls of each function of the module and of operators, by name, and their tensors. The calls catch errors."""
    x, y, w = torch.randn(3, 4), torch.randn(3, 4), torch.randn(5, 4, requires_grad=True)
    i, one, doubles = torch.tensor([2, 0]), torch.tensor(2.5), torch.arange(5.0).double()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such tensors are in beta state
        sparse = torch.eye(3).to_sparse_csr()
    operators = torch.ops.stable_operators
    cell = m.Cell(w)

    def failing(function, *arguments):
        def call():
            with raises((IndexError, TypeError, ValueError, KeyError, RuntimeError, NotImplementedError)):
                function(*arguments)

        return call

    def with_gradient():
        w.grad = None
        m.linear(x, w).sum().backward()

    given = {
        **dict.fromkeys(("numel", "numel_of_any", "same", "kept", "metadata", "addresses", "relu"), (x,)),
        **dict.fromkeys(("without_the_gil", "sums", "change", "double_", "on_its_device", "made_with_gradients"), (x,)),
        **dict.fromkeys(("is_borrowing", "undefined", "undefined_requires_grad", "deletions"), ()),
        **dict.fromkeys(("item", "number_in", "result_type"), (one,)),
        **dict.fromkeys(("linear", "of_fields", "arithmetic"), (x, y)),
        "size": (x, 1),
        "row_sums_": (x, 1),
        "biggest": (x, 1),
        "histogram": (y,),
        "zeros": ((2, 3), None),
        "cat": ([x, y],),
        "split": (x,),
        "index": (x, i),
        "without_gradients": (w,),
        "arithmetic_of_sparse": (sparse,),
        "contiguous": (x.t(),),
        "with_number": (x, 2.5, "mul"),
        "total": (doubles,),
        "total_of_constants": (doubles,),
        "counted_up": (5,),
        "blob_of_nothing": ((0,),),
        "handle_in_a_loop": (x,),
        "converted": (300, "float32"),
        "hold": (x, "optional"),  # replaces the one before
        "let_go": (),
        "layout_and_memory_format": (0, 0),
    }
    wrong = {
        "numel_of_undefined": (),
        "address_of_doubles": (x,),
        "fail_in_torch_on_a_thread": (x,),
        "fail_in_a_loop": (),
        "blob_of_sizes": ((-1,),),
        "converted_with_gradients": (x,),
        "raise_as_from_torch": ("the first line\nand the second", "aten::mine"),
    }
    found = {name: partial(getattr(m, name), *arguments) for name, arguments in given.items()}
    found |= {name: failing(getattr(m, name), *arguments) for name, arguments in wrong.items()}
    found["squares"] = lambda: list(m.squares(4))
    listed = {name for name, one in vars(m).items() if callable(one) and not isinstance(one, type) and name[0] != "_"}
    assert set(found) == listed, set(found) ^ listed
    found |= {
        "Cell": lambda: m.Cell(w),
        "Cell.forward": lambda: cell.forward(x),
        "backward": with_gradient,
        "numel of None": failing(m.numel, None),
        "biggest of no dimension": failing(m.biggest, x, 7),
        "scaled_mm": lambda: operators.scaled_mm(x, y.t(), 2.0),
        "all_types": lambda: operators.all_types([x, x], 2.5, "abc", True, [1, 2], x, torch.float64, 0),
        "narrowed": failing(operators.narrowed, 2**40, x, [], [1], None),
        "failing": failing(operators.failing, 2),
        "handling": lambda: operators.handling(x),
        "bits": lambda: operators.bits(5),
        "bit": lambda: operators.bit(5, 2),
        "has_bit": lambda: operators.has_bit(256),
        "folded": lambda: operators.folded([1, 2, 3, 4], [3]),
        "unsigned_numbers": lambda: operators.unsigned_numbers([5, 2**62]),
        "counted": failing(operators.counted, x, -1),
    }
    return found, [x, y, w, i, one, doubles, sparse]


SINGLETONS = (None, True, False, NotImplemented, Ellipsis)
"""Not immortal before CPython 3.12. Code of the interpreter itself keeps some references to them."""


IS_IMMORTAL = getattr(sys, "_is_immortal", lambda _: False)
"""Of CPython 3.14, which does not count references to immortal objects. A file for the Limited API of 3.11 does.
CPython 3.12 and 3.13 count as well once such a file has begun: their immortal objects are at the limit."""

LESS_OFTEN = {
    # For each error of its own, torch resolves the names in the traceback, which takes milliseconds.
    **dict.fromkeys(("fail_in_torch_on_a_thread", "handle_in_a_loop", "handling", "biggest of no dimension"), 100),
    # These take more than ten microseconds.
    **dict.fromkeys(("all_types", "arithmetic", "arithmetic_of_sparse", "backward", "counted", "failing"), 10),
    **dict.fromkeys(("fail_in_a_loop", "histogram", "narrowed", "of_fields", "scaled_mm"), 10),
}
"""How many calls of other functions there are for each call of one of these."""


def check_growth(m, calls):
    """References and memory do not grow in many calls of each function, after some to warm up."""
    found, tensors = calls_of_each(m)
    assert found.keys() >= LESS_OFTEN.keys()
    limit = 1024 + calls // 1000  # KiB: about two bytes a call for a million
    gc.collect()
    gc.freeze()  # a collection that visits the objects of torch takes longer than the calls
    for name, call in found.items():
        # With several threads, most of the time would go to waiting for each other. With one, this would not fail.
        torch.set_num_threads(2 if name == "fail_in_torch_on_a_thread" else 1)
        number = max(calls // LESS_OFTEN.get(name, 1), min(calls, 300))
        for _ in range(min(number, 1000)):
            call()
        gc.collect()  # tracebacks hold frames, which hold these tensors
        # torch and CPython keep some objects, fewer in each round, and an allocator may take a large piece once. A leak
        # grows in every round.
        for _ in range(4):
            # Reading a refcount takes a reference itself, the same each time.
            single = [sys.getrefcount(one) for one in SINGLETONS]
            references, memory, blocks = [sys.getrefcount(one) for one in tensors], resident(), sys.getallocatedblocks()
            for _ in range(number):
                call()
            gc.collect()
            assert [sys.getrefcount(one) for one in tensors] == references, name
            for one, before in zip(SINGLETONS, single, strict=True):
                if IS_IMMORTAL(one):
                    continue
                after = sys.getrefcount(one)
                assert abs(after - before) < 100 + number // 10, f"{name}: {one}: {before}, then {after} references"
            objects, grown = sys.getallocatedblocks() - blocks, resident() - memory
            if objects < 100 + number // 100 and grown < limit:
                break
        else:
            raise AssertionError(f"{name}: {objects} objects and {grown} KiB more after {number} calls")


def main(folder, calls=0):
    sys.path.insert(0, folder)
    import stable_operators as operators
    import stable_tensors as tensors

    wanted = os.environ.get("INTEROP_BORROW") != "0"
    assert tensors.is_borrowing() == wanted, "the layout of torch.Tensor is not the one that is borrowed from"
    for check in CHECKS:
        check(tensors, operators)
    if calls:
        check_growth(tensors, calls)
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "python": platform.python_version(),
                "checks": len(CHECKS),
                "borrows": bool(tensors.is_borrowing()),
                "calls": calls,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
