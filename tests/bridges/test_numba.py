"""interop.numba: functions that Numba compiles take tensors as arrays, with the layout and access that these have."""

import numpy as np
import pytest
import torch

import interop

numba = pytest.importorskip("numba", reason="numba is not installed: pip install -r requirements/libraries.txt")
import interop.numba  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def array_type(tensor):
    """Numba's type for the array over the tensor's memory."""
    return numba.typeof(interop.to_numpy(tensor))


CASES = {
    **{f"{ndim}-d": lambda ndim=ndim: torch.ones((2,) * ndim) for ndim in range(5)},
    **{
        str(dtype): lambda dtype=dtype: torch.ones(3, dtype=dtype)
        for dtype in (torch.bool, torch.int8, torch.int64, torch.uint8, torch.uint16, torch.float16, torch.float64)
    },
    "complex": lambda: torch.ones(3, dtype=torch.complex64),
    "Fortran order": lambda: torch.ones(2, 3).T,
    "a part with steps": lambda: torch.ones(6)[::2],
    "without elements": lambda: torch.ones(0, 3),
    "expanded": lambda: torch.ones(1).expand(3),
    "over a read-only array": lambda: interop.from_numpy(np.broadcast_to(1.0, (3,)), on_readonly="share"),
}


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_the_type_is_that_of_the_array(make):
    tensor = make()
    found, expected = numba.typeof(tensor), array_type(tensor)
    assert isinstance(found, interop.numba.TensorType)
    for name in ("dtype", "ndim", "layout", "mutable", "aligned"):
        assert getattr(found, name) == getattr(expected, name), name


@pytest.mark.parametrize("name", ["expanded", "over a read-only array"])
def test_read_only_memory_is_read_only(name):
    @numba.njit
    def clear(x):
        x[0] = 0

    tensor = CASES[name]()
    assert not numba.typeof(tensor).mutable
    with pytest.raises(numba.TypingError, match=r"[Cc]annot modify readonly array"):
        clear(tensor)
    assert tensor[0] == 1


@pytest.fixture(scope="module")
def total():
    @numba.njit
    def total(x):
        result = 0.0
        for value in x.flat:
            result += value
        return result

    return total


@pytest.mark.parametrize("ndim", range(5))
def test_ranks(total, ndim):
    tensor = torch.arange(2.0**ndim).reshape((2,) * ndim)
    assert total(tensor) == tensor.sum()
    assert total(tensor.movedim(0, -1) if ndim else tensor) == tensor.sum()


def test_a_tensor_that_requires_grad_is_rejected(total):
    tensor = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="must not require grad"):
        total(tensor)
    with torch.no_grad():
        assert total(tensor) == 3
    assert total(tensor.detach()) == 3


def test_a_tensor_without_memory_is_rejected(total):
    for tensor, error in ((torch.empty(3, device="meta"), TypeError), (torch.ones(3).to_sparse(), TypeError)):
        with pytest.raises(error, match="argument 'tensor' must"):
            total(tensor)


def test_explicit_signatures():
    @numba.njit("float64(float64[:])")
    def first(x):
        return x[0]

    tensor = torch.arange(3.0, dtype=torch.float64) + 1
    with pytest.raises(TypeError, match="can't unbox array"):  # Numba's message
        first(tensor)
    assert interop.with_arrays(first)(tensor) == 1
    with pytest.raises(TypeError, match="No matching definition"):
        interop.with_arrays(first)(tensor.float())


def test_writes_and_results():
    @numba.njit
    def double(x):
        x *= 2
        return x[1:]

    tensor = torch.arange(3.0)
    found = double(tensor)
    assert tensor.tolist() == [0, 2, 4]
    assert tensor._version == 0  # autograd does not see the write
    other = torch.ones(2)
    interop.with_arrays(double, mutates_args=["x"])(other)
    assert (other.tolist(), other._version) == ([2, 2], 1)
    assert isinstance(found, np.ndarray)
    assert np.shares_memory(found, interop.to_numpy(tensor))
    del tensor
    assert found.tolist() == [2, 4]  # it keeps the memory alive


COUNTS = """
import numba, torch, interop

@numba.njit
def read(x):
    return x[0]

@numba.njit
def write(x):
    x[0] = 5

def is_counted(function):
    tensor = torch.ones(3)
    loss = (tensor * torch.ones(3, requires_grad=True)).sum()
    function(tensor)
    assert tensor[0] == (5 if function is write else 1)
    try:
        loss.backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return True
    return False

for count_writes in ("found", "asked"):
    with interop.enable_buffer_protocol(count_writes=count_writes):
        print(count_writes, is_counted(read), is_counted(write))
"""


@pytest.mark.parametrize("imported", ["", "import interop.numba"])
def test_who_reads_and_who_writes(bare, imported):
    """Numba requests no memory to write to, so its writes are not found. It reads the type of each argument."""
    assert bare(imported + COUNTS) == "found False False\nasked True True\n"


def test_a_list_of_tensors_is_for_reading():
    """As the docstring of interop.numba says."""

    @numba.njit
    def total(many):
        return many[0].sum() + many[1].sum()

    @numba.njit
    def append(many, one):
        many.append(one)
        return len(many)

    one, other = torch.ones(2), torch.full((2,), 3.0)
    many = [one, other]
    assert total(many) == 8
    assert (many[0], many[1]) == (one, other)
    assert append(many, one) == 3
    assert [type(each) for each in many] == [np.ndarray] * 3
