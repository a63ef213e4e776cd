"""What `with_arrays` puts in the place of classes, modules and objects behaves as they do."""

import collections.abc
import copy
import functools
import gc
import operator
import pickle
import sys
import types
import weakref

import numpy as np
import pytest
import torch
from scipy import interpolate, sparse

from interop import from_array, from_numpy, with_arrays


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
    assert (int(made), float(made), complex(made)) == (13, 13.0, 13 + 0j)
    assert (divmod(made, 5), divmod(100, made)) == (divmod(13, 5), divmod(100, 13))
    assert round(with_arrays(Number)(13)) == 13
    assert not isinstance(made, collections.abc.Iterator)


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


class Recorder:
    """Its attributes are views of one array that torch cannot have, or that change."""

    def __init__(self):
        self.state = np.zeros(2)
        self.reverse, self.square = self.state[::-1], np.ones((2, 2))
        self.log, self.counts = [np.zeros(1)], {"b": np.zeros(1)}

    def step(self):
        self.state += [1, 2]


def test_an_array_that_is_copied_is_copied_anew():
    made = with_arrays(Recorder)()
    kept = []
    for _ in range(3):
        made.step()
        kept.append(made.reverse)
    assert [one.tolist() for one in kept] == [[2, 1], [4, 2], [6, 3]]


@pytest.mark.filterwarnings("ignore:Setting the dtype on a NumPy array:DeprecationWarning")
@pytest.mark.parametrize(
    "change",
    [
        lambda array, tensor: setattr(array, "dtype", np.int64),
        lambda array, tensor: tensor.t_(),
        lambda array, tensor: setattr(tensor, "data", torch.zeros(2, 2)),
        lambda array, tensor: tensor.requires_grad_(),
    ],
)
def test_a_tensor_that_no_longer_is_the_array_is_not_given_again(change):
    made = with_arrays(Recorder)()
    tensor = made.square
    assert made.square is tensor
    change(made.__wrapped__.square, tensor)
    again = made.square
    assert again is not tensor
    assert (again.stride(), again.dtype) == (from_numpy(made.__wrapped__.square).stride(), again.dtype)
    assert np.array_equal(again.numpy(), made.__wrapped__.square)
    assert not again.requires_grad


def test_inference_mode_makes_tensors_of_its_own():
    made = with_arrays(Recorder)()
    with torch.inference_mode():
        inside = made.state
    assert inside.is_inference()
    assert not made.state.is_inference()


def test_changes_in_place_of_an_attribute_reach_the_object():
    made = with_arrays(Recorder)()
    log = made.log
    log += [torch.ones(1)]
    log.append(torch.ones(1))
    assert [type(one) for one in made.__wrapped__.log] == [np.ndarray] * 3
    counts = made.__wrapped__.counts
    made.counts |= {"a": torch.ones(1)}
    assert made.__wrapped__.counts is counts
    assert type(counts["a"]) is np.ndarray


def test_a_deep_copy_and_a_clone_are_stand_ins():
    class Estimator(Recorder):
        def __deepcopy__(self, memo):
            return Estimator()

        def __sklearn_clone__(self):
            return Estimator()

    made = with_arrays(Estimator)()
    copied = copy.deepcopy(made)
    assert type(copied) is type(made)
    assert copied.__wrapped__ is not made.__wrapped__
    assert type(made.__sklearn_clone__().state) is torch.Tensor


def test_methods_and_wrappers_can_be_pickled_by_value():
    """As joblib and cloudpickle do."""
    cloudpickle = pytest.importorskip(
        "cloudpickle", reason="cloudpickle is not installed: pip install -r requirements/test.txt"
    )
    double = pickle.loads(cloudpickle.dumps(with_arrays(lambda a: a * 2)))
    assert double(torch.ones(2)).tolist() == double([torch.ones(2)][0]).tolist() == [2, 2]
    step = pickle.loads(cloudpickle.dumps(with_arrays(Recorder)().step))
    assert step() is None


def test_an_object_that_computes_its_docstring():
    class Fails:
        @property
        def __doc__(self):
            raise ValueError

    assert with_arrays(Fails()).__wrapped__
    assert with_arrays(bool)(1) is True


def test_an_array_that_becomes_a_function():
    """As scikit-learn's init= and kernel=."""
    made = with_arrays(Recorder())
    assert made.square.shape == (2, 2)
    made.__wrapped__.square = len
    assert made.square([1]) == 1
    assert made.square([1]) == 1


def test_a_change_in_place_that_gives_something_else():
    class Last:
        def __iadd__(self, other):
            return other

    class Kept(torch.Tensor):
        pass

    x, weight = torch.ones(2), torch.ones(2, requires_grad=True)
    loss = (weight * x).sum()
    made = with_arrays(Last)()
    made += x
    assert made is x
    made.fill_(9)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    made = with_arrays(Last)()
    made += x.as_subclass(Kept)
    assert type(made) is Kept
