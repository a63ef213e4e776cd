"""interop.from_numpy and interop.to_numpy: what they share, own and reject, compared with NumPy and torch."""

import gc
import importlib
import inspect
import mmap
import pickle
import re
import sys
import threading
import weakref
from functools import partial

import bridge_checks as checks
import numpy as np
import pytest
import torch
from bridge_checks import laid_out, shapes
from broken_converters import FROM, TO
from conftest import ENDS, FREE_THREADED
from hypothesis import given, settings
from hypothesis import strategies as st

import interop

pytestmark = [pytest.mark.native, pytest.mark.filterwarnings("ignore:.*Triggered internally:UserWarning")]

ML = {
    "bfloat16": torch.bfloat16,
    "float8_e5m2": torch.float8_e5m2,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2fnuz": torch.float8_e5m2fnuz,
    "float8_e4m3fnuz": torch.float8_e4m3fnuz,
    "float8_e8m0fnu": torch.float8_e8m0fnu,
}


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(sorted(checks.PLAIN)), shapes(), st.booleans())
def test_every_array_is_shared(name, shape, broadcast):
    array = laid_out(name, *shape)
    if broadcast:
        array = np.lib.stride_tricks.as_strided(array, (3, *array.shape), (0, *array.strides))
    checks.shares_an_array(interop.from_numpy, array)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(sorted(checks.PLAIN)), shapes(), st.booleans())
def test_every_tensor_is_shared(name, shape, expand):
    array = laid_out(name, *shape)
    base = torch.from_numpy(array.base if array.base is not None and array.base.base is None else array)
    tensor = torch.from_numpy(array)
    assert tensor.storage_offset() == 0
    if array.size and base.is_contiguous() and base.dtype == tensor.dtype:
        offset = (array.ctypes.data - base.data_ptr()) // array.itemsize
        tensor = base.reshape(-1).as_strided(tensor.shape, tensor.stride(), offset)
    checks.shares_a_tensor(interop.to_numpy, tensor.expand(3, *tensor.shape) if expand else tensor)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(sorted(checks.PLAIN)), shapes(), st.booleans(), st.sampled_from(["raise", "share", "copy"]))
def test_writeability_goes_round(name, shape, writable, on_readonly):
    """array -> tensor -> array, and memoryview -> tensor -> array: read-only memory is still read-only at the end."""
    array = laid_out(name, *shape)
    array.flags.writeable = writable
    if not writable and on_readonly == "raise":
        checks.refuses(interop.from_numpy, array, ValueError, ["read-only"])
        return
    tensor = interop.from_numpy(array, on_readonly=on_readonly)
    shown, view = interop.to_numpy(tensor), interop.as_memoryview(tensor)
    again = interop.from_buffer(view, on_readonly="share")
    last = interop.to_numpy(again)
    assert checks.bytes_of(again) == view.tobytes() == shown.tobytes() == array.tobytes()
    assert shown.shape == last.shape == view.shape == array.shape
    may_write = writable or on_readonly == "copy"
    assert (shown.flags.writeable, last.flags.writeable, view.readonly) == (may_write, may_write, not may_write)
    if array.size:
        assert again.data_ptr() == tensor.data_ptr() == shown.ctypes.data
        assert (tensor.data_ptr() == array.ctypes.data) == (writable or on_readonly == "share")


def array_checks():
    """Every check of from_numpy, on a fixed set of arrays."""
    for name in checks.PLAIN:
        flat = checks.filled(name, 24)
        shaped = [flat, flat[0:0], flat[3:4], flat[5:6].reshape(()), flat.reshape(2, 3, 4)[:, 1:, ::2]]
        for array in (*shaped, flat.reshape(4, 6).T, flat[:0].reshape(2, 0, 3)):
            yield partial(checks.shares_an_array, array=array)
    broadcast = np.lib.stride_tricks.as_strided(np.ones(3), (2, 3), (0, 8))
    yield partial(checks.shares_an_array, array=broadcast)
    yield checks.owns_its_array
    yield checks.stays_in_place
    for make, kind, words in checks.ARRAY_REFUSALS.values():
        yield partial(checks.refuses, given=make(), kind=kind, words=words)


def tensor_checks():
    """Every check of to_numpy, on a fixed set of tensors."""
    for name in checks.PLAIN:
        flat = torch.from_numpy(checks.filled(name, 24))
        shaped = [flat, flat[0:0], flat[3], flat.view(2, 3, 4)[:, 1:, ::2], flat.view(4, 6).T]
        for tensor in (*shaped, flat[:0].view(2, 0, 3), flat[:3].expand(2, 3)):
            yield partial(checks.shares_a_tensor, tensor=tensor)
    yield checks.array_owns_the_memory
    yield checks.stays_under_an_array
    for make, kind, words in checks.TENSOR_REFUSALS.values():
        yield partial(checks.refuses, given=make(), kind=kind, words=words)


def failures(checks_of, convert):
    """The number of checks that fail."""
    count = 0
    for check in checks_of():
        try:
            check(convert)
        except AssertionError:
            count += 1
    return count


def test_ours_pass_every_check():
    for check in array_checks():
        check(interop.from_numpy)
    for check in tensor_checks():
        check(interop.to_numpy)


class Turns(np.ndarray):
    """Becomes another array when its mask is read."""

    turned = 0

    @property
    def _mask(self):
        Turns.turned += 1
        self.__setstate__((1, (1,), np.dtype("i1"), False, b"a"))
        return np.ma.nomask


@pytest.mark.parametrize("convert", [interop.from_numpy, interop.from_dlpack, interop.from_buffer])
def test_an_array_that_turns_into_another_meanwhile(convert):
    """The tensor shares the final memory of the array, or the converter raises."""
    importlib.import_module("numpy.ma")  # before that, converters know that no array has a mask
    array = np.zeros(4, dtype=complex).view(Turns)
    before = Turns.turned
    try:
        tensor = convert(array)
    except (ValueError, BufferError):
        return
    finally:
        assert Turns.turned > before
    assert tensor.untyped_storage().nbytes() <= array.nbytes
    assert np.array_equal(tensor.numpy(), np.asarray(array))


def test_zeros_that_are_not_in_memory():
    """They raise; torch.utils.dlpack.to_dlpack crashes with them."""
    zeros = torch._efficientzerotensor((2, 3))
    for show in (interop.to_numpy, interop.as_memoryview, interop.TensorBuffer):
        with pytest.raises(ValueError, match=r"zero tensor.*\.clone\(\)"):
            show(zeros)
    for show in (interop.to_dlpack, interop.from_dlpack):
        with pytest.raises(BufferError, match=r"zero tensor.*\.clone\(\)"):
            show(zeros)
    with interop.enable_buffer_protocol():
        with pytest.raises(BufferError, match=r"zero tensor.*\.clone\(\)"):
            memoryview(zeros)
        with pytest.raises(ValueError, match=r"zero tensor.*\.clone\(\)"):
            bytes(zeros)
    assert interop.to_numpy(zeros, force=True).tolist() == zeros.numpy(force=True).tolist() == [[0] * 3] * 2


@pytest.mark.unchecked(by="asan", reason="the broken converters read memory that is gone, on purpose")
@pytest.mark.unchecked(by="leaks", reason="the broken converters leak, on purpose")
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(FROM))
def test_the_checks_catch_a_broken_from_numpy(name):
    assert failures(array_checks, FROM[name](interop.from_numpy))


@pytest.mark.unchecked(by="asan", reason="the broken converters read memory that is gone, on purpose")
@pytest.mark.unchecked(by="leaks", reason="the broken converters leak, on purpose")
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(TO))
def test_the_checks_catch_a_broken_to_numpy(name):
    assert failures(tensor_checks, TO[name](interop.to_numpy))


@pytest.mark.parametrize("name", sorted(checks.ARRAY_REFUSALS))
def test_from_numpy_refuses(name):
    make, kind, words = checks.ARRAY_REFUSALS[name]
    checks.refuses(interop.from_numpy, make(), kind, words)


@pytest.mark.parametrize("name", sorted(checks.TENSOR_REFUSALS))
def test_to_numpy_refuses(name):
    make, kind, words = checks.TENSOR_REFUSALS[name]
    checks.refuses(interop.to_numpy, make(), kind, words)


@pytest.mark.parametrize("name", sorted(ML))
def test_dtypes_of_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    kind = getattr(ml_dtypes, name)
    checks.shares_an_array(interop.from_numpy, checks.filled(np.uint16, 12).view(kind)[:12].reshape(3, 4).T, ML[name])
    tensor = torch.from_numpy(checks.filled(np.uint8, 24)).view(ML[name])
    checks.shares_a_tensor(interop.to_numpy, tensor[::2], np.dtype(kind))


def test_a_dtype_of_ml_dtypes_that_torch_lacks():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    with pytest.raises(TypeError, match=r"int4.*array.view"):
        interop.from_numpy(np.zeros(3, ml_dtypes.int4))


def test_a_dtype_that_torch_lacks_where_there_is_no_ml_dtypes(monkeypatch):
    monkeypatch.delitem(sys.modules, "ml_dtypes", raising=False)
    with pytest.raises(TypeError, match=r"'array' must have a dtype that torch has, got StringDType"):
        interop.from_numpy(np.array(["a"], np.dtypes.StringDType()))


def test_without_ml_dtypes_there_are_the_bits(bare):
    code = """
import sys, torch, interop
sys.modules["ml_dtypes"] = None
tensor = torch.ones(3, dtype=torch.bfloat16)
try:
    interop.to_numpy(tensor)
except TypeError as error:
    print(error)
bits = interop.to_numpy(tensor.view(torch.uint16))
print(bits.tolist(), interop.from_numpy(bits).view(torch.bfloat16).tolist())
"""
    refusal, bits = bare(code).splitlines()
    assert "pip install ml_dtypes" in refusal
    assert ".view(torch.uint16)" in refusal
    assert bits == "[16256, 16256, 16256] [1.0, 1.0, 1.0]"


def test_no_name_of_the_package_imports_numba(bare, tmp_path):
    """A module in its place shows the import, whether Numba is installed or not."""
    (tmp_path / "numba.py").write_text("")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import interop
for name in interop.__all__:
    getattr(interop, name)
print("numba" in sys.modules)
import numba
print(numba.__file__)
"""
    assert bare(code).splitlines() == ["False", str(tmp_path / "numba.py")]


@pytest.mark.parametrize("dtype", ["longlong", "ulonglong", "intc", "uintc", "long", "ulong"])
def test_c_types_with_two_names(dtype):
    array = np.arange(3, dtype=dtype)
    assert interop.from_numpy(array).tolist() == [0, 1, 2]
    assert interop.from_numpy(array).dtype.itemsize == array.itemsize


def test_a_negative_stride_on_an_axis_of_length_1():
    array = np.arange(6.0)[2::-4]
    assert array.strides == (-32,)
    array = array.reshape(1)
    assert interop.from_numpy(np.arange(6.0)[2:1:-1]).stride() == (1,)
    odd = np.lib.stride_tricks.as_strided(np.arange(6.0), (1, 3), (-8, 16))
    tensor = interop.from_numpy(odd)
    assert tensor.tolist() == [[0.0, 2.0, 4.0]]
    assert tensor.stride() == (6, 2)


def test_rank_64_and_65():
    array = np.arange(2.0).reshape([1] * 63 + [2])
    tensor = interop.from_numpy(array)
    assert tensor.dim() == 64
    assert interop.to_numpy(tensor).shape == array.shape
    with pytest.raises(ValueError, match=r"64 dimensions.*65.*flatten"):
        interop.to_numpy(tensor[None])


@pytest.mark.parametrize("array", [np.broadcast_to(np.arange(3), (2, 3)), np.frombuffer(b"abc", np.uint8)])
def test_read_only_arrays(array):
    follow = weakref.ref(array)
    shared = interop.from_numpy(array, on_readonly="share")
    assert shared.data_ptr() == array.ctypes.data
    back = interop.to_numpy(shared)
    assert not back.flags.writeable
    copied = interop.from_numpy(array, on_readonly="copy")
    assert copied.is_contiguous()
    assert copied.untyped_storage().resizable()
    assert copied.data_ptr() != array.ctypes.data
    assert copied.tolist() == array.tolist()
    assert interop.to_numpy(copied).flags.writeable
    assert follow() is array


def test_what_on_readonly_may_be():
    writable = np.ones(3)
    for on_readonly in ("raise", "share", "copy", "".join(["ra", "ise"])):
        assert interop.from_numpy(writable, on_readonly=on_readonly).data_ptr() == writable.ctypes.data
    for wrong in ("", "no", None, True, 1, b"copy"):
        with pytest.raises(ValueError, match="'on_readonly' must be 'raise', 'share' or 'copy'"):
            interop.from_numpy(writable, on_readonly=wrong)
    with pytest.raises(TypeError):
        interop.from_numpy(writable, "copy")


CALLED = {
    "from_numpy": ("array", np.arange(3.0), {"on_readonly": "copy"}, "(array, *, on_readonly='raise')"),
    "to_numpy": ("tensor", torch.arange(3.0), {"readonly": True}, "(tensor, *, force=False, readonly=False)"),
    "as_memoryview": ("tensor", torch.arange(3.0), {"readonly": True}, "(tensor, *, readonly=False)"),
    "from_dlpack": (
        "obj",
        torch.arange(3.0),
        {"copy": True},
        "(obj, *, device=None, copy=None, on_readonly='raise')",
    ),
}
"""The functions with a path of their own for one positional argument: its name, one, keywords, and the signature."""


@pytest.mark.parametrize("name", CALLED)
def test_every_way_to_call(name):
    """One positional argument takes another path than all other calls: see with_fast_path in csrc/bridges."""
    convert = getattr(interop, name)
    parameter, value, keywords, signature = CALLED[name]
    expected = value.tolist()
    for made in (
        convert(value),
        convert(**{parameter: value}),
        convert(value, **keywords),
        convert(**{parameter: value}, **keywords),
    ):
        assert made.tolist() == expected
        assert type(made) is type(convert(value))
    for positional, named, message in (
        ((), {}, "takes exactly 1 positional argument (0 given)"),
        ((), keywords, "takes exactly 1 positional argument (0 given)"),
        ((value, value), {}, "takes exactly 1 positional argument (2 given)"),
        ((value,), {parameter: value}, f"got multiple values for keyword argument '{parameter}'"),
        ((value,), {"x": 1}, "got an unexpected keyword argument 'x'"),
    ):
        with pytest.raises(TypeError, match=re.escape(f"{name}() {message}")):
            convert(*positional, **named)
    with pytest.raises(TypeError, match=f"argument '{parameter}'"):
        convert(None)
    assert str(inspect.signature(convert)) == signature
    assert inspect.getdoc(convert).partition(" ")[0] in ("A", "An")
    assert (convert.__name__, convert.__qualname__, convert.__module__) == (name, name, "interop._bridges")
    assert pickle.loads(pickle.dumps(convert)) is convert
    assert weakref.ref(convert)() is convert


def test_read_only_arrays_of_tensors():
    tensor = torch.ones(3, requires_grad=True)
    array = interop.to_numpy(tensor, readonly=True)
    assert array.ctypes.data == tensor.data_ptr()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 2
    assert interop.to_numpy(torch.ones(0), readonly=True).flags.writeable is False
    with torch.no_grad():
        assert interop.to_numpy(tensor).flags.writeable


def test_force_is_that_of_torch():
    graph = torch.ones(2, requires_grad=True) * 3
    conj = torch.tensor([1 + 2j]).conj()
    for tensor in (graph, conj, conj.imag, torch.ones(2), torch.ones(2).to_sparse().to_dense()):
        ours, theirs = interop.to_numpy(tensor, force=True), tensor.numpy(force=True)
        assert ours.tobytes() == theirs.tobytes()
        assert np.shares_memory(ours, theirs) == (not (tensor.is_conj() or tensor.is_neg()))
    with pytest.raises(TypeError, match="to_dense"):
        interop.to_numpy(torch.eye(2).to_sparse(), force=True)


def test_wrappers_of_transforms_are_refused():
    for transform in (torch.func.vmap, torch.func.grad):
        with pytest.raises(TypeError, match=r"torch\.func"):
            transform(lambda x: torch.as_tensor(interop.to_numpy(x)).sum())(torch.ones(3, 2)[0])
    with pytest.raises(TypeError, match="functional"):
        torch.func.functionalize(lambda x: interop.to_numpy(x))(torch.ones(3))


def test_fakes_and_subclasses():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode(), pytest.raises(TypeError, match="__torch_dispatch__"):
        interop.to_numpy(torch.empty(3))

    class Plain(torch.Tensor):
        pass

    assert interop.to_numpy(torch.ones(3).as_subclass(Plain)).tolist() == [1, 1, 1]
    parameter = torch.nn.Parameter(torch.ones(2))
    assert interop.to_numpy(parameter.detach()).ctypes.data == parameter.data_ptr()


def test_dual_tensors_are_refused():
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(RuntimeError, match="unpack_dual"):
            interop.to_numpy(dual)


def test_inference_tensors():
    with torch.inference_mode():
        tensor = torch.arange(3)
    array = interop.to_numpy(tensor)
    array[0] = 5
    assert tensor.tolist() == [5, 1, 2]


def test_lazily_cloned_memory_is_copied_before_it_is_shared():
    tensor = torch.arange(3)
    clone = tensor._lazy_clone()
    interop.to_numpy(clone)[0] = 7
    assert (tensor.tolist(), clone.tolist()) == ([0, 1, 2], [7, 1, 2])
    # torch does not lazily clone memory that an array shares: the array would write past torch, into both tensors.
    interop.to_numpy(tensor)
    with pytest.raises(RuntimeError):
        tensor._lazy_clone()


def test_writes_and_the_version():
    """As in torch, writes to an array are not counted; increment_version() reports them. Reading needs no call."""
    for write in (False, True):
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        array = interop.to_numpy(y.detach())
        if write:
            array += 1
            torch.autograd.graph.increment_version(y)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
        else:
            y.sum().backward()
            assert x.grad.tolist() == y.tolist()


def test_chains_keep_one_allocation():
    array = np.arange(4)
    tensor = interop.from_numpy(array)
    again = interop.to_numpy(tensor)
    assert again.base is array
    third = interop.from_numpy(again)
    assert third.data_ptr() == array.ctypes.data
    first = torch.arange(4)
    chain = first
    for _ in range(5):
        chain = interop.from_numpy(interop.to_numpy(chain))
    address = first.data_ptr()
    del first
    gc.collect()
    assert (chain.data_ptr(), chain.tolist()) == (address, [0, 1, 2, 3])


@pytest.mark.parametrize(
    "borrow",
    [torch.from_numpy, torch.from_dlpack, lambda owner: torch.frombuffer(owner, dtype=torch.int64), interop.from_numpy],
    ids=["from_numpy", "from_dlpack", "frombuffer", "ours"],
)
@pytest.mark.parametrize("convert", [interop.to_numpy, interop.as_memoryview])
def test_memory_that_torch_borrowed_outlives_its_storage(borrow, convert):
    checks.owns_what_torch_borrowed(convert, borrow)


def test_memmaps_keep_their_file(tmp_path):
    path = tmp_path / "numbers"
    mapped = np.memmap(path, np.int32, "w+", shape=(8,))
    mapped[:] = range(8)
    tensor = interop.from_numpy(mapped[2:])
    follow = weakref.ref(mapped._mmap)
    assert isinstance(follow(), mmap.mmap)
    bases = [interop.to_numpy(tensor)]  # joblib looks for the memmap among them
    while isinstance(bases[-1], np.ndarray):
        bases.append(bases[-1].base)
    assert bases[-1] is mapped._mmap
    assert any(isinstance(base, np.memmap) for base in bases)
    del mapped, bases
    gc.collect()
    tensor[0] = 100
    assert follow() is not None
    assert np.fromfile(path, np.int32).tolist() == [0, 1, 100, 3, 4, 5, 6, 7]
    del tensor
    assert follow() is None


def test_no_cycle_through_what_an_array_holds():
    tensor = torch.ones(3)
    tensor.array = interop.to_numpy(tensor)
    follow = weakref.ref(tensor)
    del tensor
    assert follow() is None


def test_owners_die_on_other_threads():
    class Noisy(np.ndarray):
        def __del__(self):
            died.append(threading.get_ident())

    died = []
    tensors = [interop.from_numpy(np.ones(3).view(Noisy)) for _ in range(20)]
    identity = []

    def drop():
        identity.append(threading.get_ident())
        tensors.clear()

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    if FREE_THREADED:
        # There the thread that made an object may be the one that frees it, once it runs Python code again.
        assert set(died) <= {*identity, threading.get_ident()}
        assert len(died) == 20
    else:
        assert died == identity * 20


def test_owners_die_on_threads_of_autograd():
    """The engine drops the last reference, a saved tensor, on a thread that does not hold the GIL."""
    died = []

    class Noisy(np.ndarray):
        def __del__(self):
            died.append(True)

    x = torch.ones(3, requires_grad=True)
    y = (x * interop.from_numpy(np.full(3, 2.0, np.float32).view(Noisy))).sum()
    y.backward()
    assert died == [True]
    assert x.grad.tolist() == [2, 2, 2]


def test_an_exception_in_flight_survives_the_owner():
    class Noisy(np.ndarray):
        def __del__(self):
            try:
                raise KeyError("swallowed")
            except KeyError:
                pass

    def fail():
        tensor = interop.from_numpy(np.ones(3).view(Noisy))
        raise IndexError(f"of {tensor.numel()}")

    with pytest.raises(IndexError, match="of 3"):
        fail()


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.long
def test_the_end_of_the_interpreter(forked, how):
    """No thread drops tensors at that moment: torch's destructor would ask for the GIL again, and abort."""
    code = """
import sys, threading, time, atexit, numpy as np, torch, interop
tensor = interop.from_numpy(np.ones(1000))
array = interop.to_numpy(torch.ones(1000))
def forever():
    while True:
        interop.to_numpy(tensor)
HOW
print("done")
"""
    lines = {
        "globals": "",
        "a daemon thread": "threading.Thread(target=forever, daemon=True).start(); time.sleep(0.2)",
        "an exit function": "atexit.register(lambda: interop.from_numpy(array))",
        "a leaked storage": "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor.untyped_storage()))",
    }
    done = forked(code.replace("HOW", lines[how]), check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_references_do_not_grow():
    array, tensor = np.ones((2, 3)), torch.ones(2, 3)
    descr, before = np.dtype("f8"), sys.getrefcount(array)
    types = sys.getrefcount(descr)
    for _ in range(200):
        interop.from_numpy(array)
        interop.to_numpy(tensor)
        for bad in (lambda: interop.from_numpy(array[::-1]), lambda: interop.to_numpy(tensor.to_sparse())):
            with pytest.raises((ValueError, TypeError)):
                bad()
    assert sys.getrefcount(array) == before
    assert abs(sys.getrefcount(descr) - types) < 20
