"""interop.memview reorders the axes of typed memoryviews as NumPy does on the same memory."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
import torch
from bridge_checks import Owner, filled, steps
from conftest import import_from
from hypothesis import given, settings
from hypothesis import strategies as st

import interop
from interop.build import cythonize

pytestmark = pytest.mark.native

ELEMENTS = ("uint8", "int16", "float64", "complex64")


@pytest.fixture(scope="session")
def memviews(site):
    """The module that permutes typed memoryviews."""
    return import_from(site, "memviews")


@st.composite
def permuted(draw):
    """An array of any rank that Cython supports, with any strides, and an order of its axes, some of them negative."""
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=7))
    steps = [draw(st.sampled_from([1, 1, 2, -1, -3])) for _ in sizes]
    array = filled(
        draw(st.sampled_from(ELEMENTS)), int(np.prod([n * abs(s) for n, s in zip(sizes, steps, strict=True)]))
    )
    array = array.reshape([n * abs(s) for n, s in zip(sizes, steps, strict=True)])[
        tuple(slice(None, None, s) for s in steps)
    ]
    order = draw(st.permutations(range(len(sizes))))
    axes = [axis - len(sizes) if draw(st.booleans()) else axis for axis in order]
    return array.transpose(draw(st.permutations(range(len(sizes))))), axes


def is_the_same(view, expected):
    """The view has the memory, shape and strides of NumPy's view."""
    array = np.asarray(view)
    assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
    assert array.tobytes() == expected.tobytes()
    if array.size:
        assert array.__array_interface__["data"][0] == expected.__array_interface__["data"][0]
        assert steps(array.shape, array.strides) == steps(expected.shape, expected.strides)


@settings(deadline=None, max_examples=400)
@given(case=permuted())
def test_permute_is_that_of_numpy(memviews, case):
    array, axes = case
    is_the_same(getattr(memviews, f"permute{array.ndim}")(array, *axes), array.transpose(axes))


def test_transpose_and_movedim_are_those_of_numpy(memviews):
    array = np.arange(120.0).reshape(2, 3, 4, 5)
    for a in range(-4, 4):
        for b in range(-4, 4):
            is_the_same(memviews.transposed(array, a, b), array.swapaxes(a, b))
            is_the_same(memviews.moved(array, a, b), np.moveaxis(array, a, b))


def test_elements_of_any_type(memviews):
    pixels = np.zeros((2, 3), np.dtype([("red", "u1"), ("depth", "f4")]))
    pixels["depth"] = np.arange(6).reshape(2, 3)
    objects = np.array([["a", 1], [None, ()]], object)
    truths = np.array([[0, 1, 1], [1, 0, 0]], np.intc)
    for view, array in zip(memviews.other_elements(pixels, objects, truths), (pixels, objects, truths), strict=True):
        assert np.array_equal(np.asarray(view), array.T)


def test_a_contiguous_view_becomes_one_with_strides(memviews):
    array = np.arange(24.0).reshape(2, 3, 4)
    fortran = np.asfortranarray(array)
    assert memviews.of_contiguous(array, fortran) == np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1).tolist()
    assert (array[0, 0, 1], fortran[1, 0, 0]) == (-1, -2)
    assert np.count_nonzero(array < 0) == np.count_nonzero(fortran < 0) == 1


def test_views_of_views(memviews):
    array = np.arange(120.0).reshape(2, 3, 4, 5)
    first, second, third = memviews.of_slices(array)
    is_the_same(first, array[1:, 0, ::-1].swapaxes(0, 1).transpose(2, 0, 1))
    is_the_same(second, array.transpose(3, 2, 1, 0)[0])
    is_the_same(third, array.swapaxes(0, 3).T)


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ((0, 1, 2, 2), ["permute", "'axes'", "each axis once", r"\(0, 1, 2, 2\)"]),
        ((0, 1, 2, -2), [r"\(0, 1, 2, -2\)"]),
        ((0, 1, 2, 4), ["'axes'", "4 dimensions", "from -4 to 3", "got 4"]),
        ((0, 1, -5, 2), ["got -5"]),
        ((0, 1, sys.maxsize, 2), [f"got {sys.maxsize}"]),
        ((0, 1, -sys.maxsize - 1, 2), [f"got -{sys.maxsize + 1}"]),
    ],
)
def test_wrong_axes_are_refused(memviews, axes, words):
    array = np.ones((2, 3, 4, 5))
    count = sys.getrefcount(array)
    with pytest.raises(ValueError, match=".*".join(words)):
        memviews.permute4(array, *axes)
    assert sys.getrefcount(array) == count


def test_wrong_arguments_of_the_others_are_named(memviews):
    array = np.ones((2, 3, 4, 5))
    for function, axes, name in [
        (memviews.transposed, (4, 0), "transpose: argument 'axis0'"),
        (memviews.transposed, (0, -5), "transpose: argument 'axis1'"),
        (memviews.moved, (7, 0), "movedim: argument 'source'"),
        (memviews.moved, (0, 4), "movedim: argument 'destination'"),
    ]:
        with pytest.raises(ValueError, match=name):
            function(array, *axes)
    with pytest.raises(ValueError, match="got 2"):
        memviews.refused_without_the_gil(np.ones((2, 3)), 2)


def test_what_is_no_memoryview_is_refused(memviews):
    with pytest.raises(TypeError, match="argument 'view' must be a memoryview, got None"):
        memviews.nothing(None)
    images = memviews.Images(np.ones((1, 2, 3, 3)))
    images.forget()
    with pytest.raises(TypeError, match="got None"):
        images.turn_what_is_forgotten()
    with pytest.raises(AttributeError, match="not initialized"):
        memviews.Images.__new__(memviews.Images).turn_what_is_forgotten()


def test_the_result_owns_the_memory(memviews):
    array = np.arange(24.0).reshape(1, 2, 3, 4).view(Owner)
    follow, expected = weakref.ref(array), array.transpose(0, 3, 1, 2).tolist()
    view = memviews.permute4(array, 0, 3, 1, 2)
    part = memviews.of_slices(view)[1]
    images = memviews.Images(array)
    del array
    gc.collect()
    assert np.asarray(view).tolist() == expected
    del view
    assert follow() is not None
    del part
    images.forget()
    for _ in range(3):
        images.turn()
    assert images.array().tolist() == np.swapaxes(expected, 2, 3).tolist()
    assert follow() is not None
    del images
    gc.collect()
    assert follow() is None


def test_references_do_not_grow(memviews):
    array = np.ones((2, 3, 4, 5))
    count = sys.getrefcount(array)
    for _ in range(100):
        memviews.permute4(array, 3, 2, 1, 0)
        memviews.of_slices(array)
        memviews.Images(array).turn()
        with pytest.raises(ValueError, match="each axis once"):
            memviews.permute4(array, 0, 0, 0, 0)
    assert sys.getrefcount(array) == count


def test_without_the_gil_on_several_threads(memviews):
    """Reference counts stay right while threads make and drop views of the same memory."""
    array = np.arange(6.0).reshape(2, 3)
    count, found = sys.getrefcount(array), []
    threads = [threading.Thread(target=lambda: found.append(memviews.total(array, 30_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [30_000.0] * 4
    assert sys.getrefcount(array) == count


def test_a_member_and_the_way_back(memviews):
    """The member shares memory with an array and a tensor made from it."""
    source = np.arange(120.0).reshape(2, 4, 5, 3)
    images = memviews.Images(source)
    array, tensor = images.array(), images.tensor()
    assert array.shape == tuple(tensor.shape) == (2, 3, 4, 5)
    assert array.ctypes.data == tensor.data_ptr() == source.ctypes.data
    assert np.array_equal(array, source.transpose(0, 3, 1, 2))
    assert torch.equal(tensor, torch.from_numpy(source).permute(0, 3, 1, 2))
    images.fill(7)
    assert (source.min(), array.min(), tensor.min()) == (7, 7, 7)
    tensor[0, 1, 2, 3] = -1
    assert source[0, 2, 3, 1] == -1


def test_members_over_tensors(memviews):
    tensor = torch.arange(24.0, dtype=torch.float64).view(1, 2, 4, 3)
    images = memviews.Images(interop.as_memoryview(tensor))
    back = images.tensor()
    assert torch.equal(back, tensor.permute(0, 3, 1, 2))
    address = tensor.data_ptr()
    del tensor, images
    gc.collect()
    assert (back.data_ptr(), back.sum()) == (address, 276)


REFUSED = {  # by Cython, before anything is compiled
    "too few axes": "return permute(v, 1, 0)",
    "too many axes": "return permute(v, 2, 1, 0, 3)",
    "a contiguous result": "cdef double[:, :, ::1] turned = permute(v, 2, 1, 0)",
    "an array": "return permute(1.0, 0)",
}


@pytest.mark.unchecked(by="leaks", reason="it runs Cython's compiler, which keeps caches")
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.long
def test_what_does_not_fit_is_not_translated(tmp_path, monkeypatch, capfd, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.pyx").write_text(
        "# distutils: language = c++\nfrom interop.memview cimport permute\n\n"
        f"def wrong(double[:, :, ::1] v):\n    {REFUSED[name]}\n"
    )
    with pytest.raises(Exception, match=r"wrong\.pyx"):
        cythonize("wrong.pyx")
    assert "wrong.pyx:5" in "".join(capfd.readouterr())
