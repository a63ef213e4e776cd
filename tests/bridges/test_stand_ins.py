"""What `with_arrays` puts in the place of classes, modules and objects behaves as they do."""

import functools
import gc
import operator
import sys
import types
import weakref

import numpy as np
import pytest
import torch
from scipy import interpolate, sparse

from interop import from_array, with_arrays


class Vector:
    """An object with operators by element, and with arrays as attributes."""

    def __init__(self, values, function=None, self_=None):
        self.values, self.function, self.table = np.asarray(values), function, {"a": np.ones(2), "n": 3}

    def __eq__(self, other):
        return self.values == (other.values if isinstance(other, Vector) else other)

    def __ne__(self, other):
        return self.values != (other.values if isinstance(other, Vector) else other)

    __hash__ = None

    def __iadd__(self, other):
        self.values += other
        return self

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=copy)

    def fit(self, values):
        self.values = values
        return self


def test_comparisons_are_those_of_the_object():
    x = torch.arange(3.0)
    made = with_arrays(Vector)(x)
    assert torch.equal(made == 1, x == 1)
    assert torch.equal(made != 1, x != 1)
    assert torch.equal(made == with_arrays(Vector)(x + 1), torch.zeros(3, dtype=torch.bool))
    with pytest.raises(TypeError, match="unhashable type: 'Vector'"):
        hash(made)
    matrix = with_arrays(sparse.csr_array)(torch.eye(2))
    assert (matrix != matrix.__wrapped__).nnz == 0
    assert with_arrays(types.SimpleNamespace(a=1)) == types.SimpleNamespace(a=1)
    assert {with_arrays(np.linalg)} == {np.linalg}


@pytest.mark.parametrize("name", ["lshift", "rshift", "add", "sub", "mul", "pow", "mod", "and_", "or_", "xor"])
def test_operators_of_numbers(name):
    calls = getattr(operator, name)
    made = with_arrays(Number)(13)
    assert calls(made, 2).__wrapped__ == calls(13, 2)
    assert calls(2, made).__wrapped__ == calls(2, 13)
    in_place = getattr(operator, f"i{name.rstrip('_')}")(made, 2)
    assert in_place.__wrapped__ == calls(13, 2)


class Number(int):
    """An int whose operators give its own class."""


def _of_int(method):
    def own(self, other):
        found = method(self, other)
        return Number(found) if isinstance(found, int) else found

    return own


for _name in ("lshift", "rshift", "add", "sub", "mul", "pow", "mod", "and", "or", "xor", "divmod"):
    for _each in (f"__{_name}__", f"__r{_name}__"):
        setattr(Number, _each, _of_int(getattr(int, _each)))


def test_numbers():
    made = with_arrays(Number)(13)
    assert (int(made), float(made), complex(made), operator.index(made)) == (13, 13.0, 13 + 0j, 13)
    assert (divmod(made, 5), divmod(100, made), [0] * 20)[:2] == (divmod(13, 5), divmod(100, 13))
    assert list(range(20))[made] == 13
    assert round(with_arrays(Number)(13)) == 13
    assert next(with_arrays(iter([np.ones(2)]))).tolist() == [1, 1]


def test_a_change_in_place_is_one():
    made = same = with_arrays(Vector)(torch.zeros(2))
    made += torch.ones(2)
    assert made is same
    assert made.values.tolist() == [1, 1]


def test_keywords_have_any_name():
    """As in scipy.interpolate.Rbf."""
    x = torch.arange(5.0, dtype=torch.float64)
    assert with_arrays(Vector)(x, function="linear").function == "linear"
    assert with_arrays(interpolate).Rbf(x, x, function="linear")(1.5).item() == pytest.approx(1.5)
    made = with_arrays(functools.partial(lambda self, function: self + function, self=torch.ones(1).numpy()))
    assert made(function=torch.ones(1)).tolist() == [2]
    assert with_arrays(types.SimpleNamespace)(self=1, function=2).__wrapped__.function == 2


def test_an_object_ends_with_its_stand_in():
    """And not at the next collection: a file would stay open."""
    gc.disable()
    try:
        made = with_arrays(Vector)(torch.ones(2))
        made.fit(torch.zeros(2)).fit(torch.ones(2))
        repr(made), made.values, made.table["a"]
        ends = weakref.ref(made.__wrapped__)
        bound = made.fit
        del made
        assert bound(torch.zeros(2)).values.tolist() == [0, 0]
        del bound
        assert ends() is None
        one = Vector(np.ones(2))
        with_arrays(one.fit)(torch.ones(2))
        ends = weakref.ref(one)
        del one
        assert ends() is None
    finally:
        gc.enable()


def test_an_array_is_one_tensor_while_it_lives():
    """So its version counts what is written to it."""
    made = with_arrays(Vector)(torch.ones(2))
    p = torch.ones(2, requires_grad=True)
    loss = (made.values * p).sum()
    made.values.mul_(5)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert made.values is made.values
    before = made.values
    made.values = torch.zeros(3)
    assert made.values.shape == (3,)
    assert before.shape == (2,)


def test_a_dict_gives_tensors_in_every_way():
    made = with_arrays(Vector)(torch.ones(2)).table
    assert [type(one) for one in made.values()] == [torch.Tensor, int]
    assert [(key, type(one)) for key, one in made.items()] == [("a", torch.Tensor), ("n", int)]
    assert len(made.values()) == 2
    assert list(made.keys()) == ["a", "n"]


def test_protocols_are_those_of_the_object():
    made = with_arrays(Vector)(torch.ones(2))
    assert np.asarray(made).tolist() == [1, 1]
    assert from_array(made).tolist() == [1, 1]
    assert made.__doc__ == Vector.__doc__


def test_no_class_is_derived_from_one():
    with pytest.raises(TypeError, match="derive it from the class, and wrap the result"):

        class Derived(with_arrays(Vector)):
            pass


@pytest.mark.parametrize("kind", [property, functools.cached_property])
def test_a_property_is_rejected(kind):
    with pytest.raises(TypeError, match=f"got a {kind.__name__}; wrap the function inside it"):
        with_arrays(kind(lambda self: 0))


def test_references_do_not_grow():
    made, x = with_arrays(Vector)(torch.ones(2)), torch.ones(2)
    counts = []
    for _ in range(50):
        made.fit(x)
        counts.append((sys.getrefcount(made.__wrapped__), sys.getrefcount(x)))
    assert counts[10:] == counts[10:11] * 40
