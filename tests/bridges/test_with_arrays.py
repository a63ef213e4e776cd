"""NumPy-only functions, called with tensors through `interop.with_arrays`."""

import collections
import contextlib
import copy
import dataclasses
import functools
import inspect
import operator
import pickle
import threading
import types

import numpy as np
import pytest
import torch
from hypothesis import given, strategies
from scipy import linalg, optimize, spatial, stats
from torch._dynamo.testing import CompileCounter
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from interop import from_buffer, from_numpy, with_arrays

pytestmark = pytest.mark.native


def seen(*args, **kwargs):
    """The arguments that a NumPy function receives."""
    return args, kwargs


def arrives(one, **options):
    """The argument as the function receives it."""
    found = []
    with_arrays(lambda given: found.append(given), **options)(one)
    return found[0]


def shares(tensor, array):
    return tensor.data_ptr() == array.__array_interface__["data"][0] and tensor.shape == array.shape


@pytest.fixture
def tensor():
    return torch.arange(12.0).reshape(3, 4)


class TestArguments:
    def test_a_tensor_arrives_as_an_array_over_its_memory(self, tensor):
        array = arrives(tensor)
        assert type(array) is np.ndarray
        assert shares(tensor, array)
        array[1, 2] = -1
        assert tensor[1, 2] == -1

    def test_also_by_keyword(self, tensor):
        with_arrays(lambda *, out: out.fill(5))(out=tensor)
        assert (tensor == 5).all()

    @pytest.mark.parametrize("other", [3, 2.5, "text", None, b"bytes", np.float32(1), np.arange(3), {1, 2}, object()])
    def test_anything_else_arrives_as_it_is(self, other, tensor):
        args, kwargs = [], {}
        with_arrays(lambda *a, **k: (args.extend(a), kwargs.update(k)))(tensor, other, name=other)
        assert args[1] is other
        assert kwargs["name"] is other

    def test_containers(self, tensor):
        point = collections.namedtuple("point", "x y")

        @dataclasses.dataclass(frozen=True)
        class Batch:
            x: object
            rest: list

        given = {"a": [tensor, (tensor[0], "b")], "p": point(tensor, 1), "d": Batch(tensor, [tensor[1]])}
        before = copy.copy(given)
        array = arrives(given)
        assert shares(tensor, array["a"][0])
        assert array["a"][0] is array["p"].x is array["d"].x  # one array per tensor
        assert type(array["p"]) is point
        assert type(array["d"]) is Batch
        assert shares(tensor[0], array["a"][1][0])
        assert shares(tensor[1], array["d"].rest[0])
        assert given.keys() == before.keys()
        assert all(given[key] is before[key] for key in given)
        assert given["a"][0] is tensor

    def test_subclasses_of_dict_stay_what_they_are(self, tensor):
        array = arrives(collections.defaultdict(list, {"x": tensor}))
        assert type(array) is collections.defaultdict
        assert array.default_factory is list
        assert shares(tensor, arrives(collections.OrderedDict(x=tensor))["x"])

    def test_containers_without_tensors_are_not_copied(self):
        for one in ([1, 2], (1, [2]), {"a": [1]}, [np.ones(2), object()]):
            assert arrives(one) is one

    def test_a_list_that_contains_itself(self, tensor):
        items = [tensor]
        items.append(items)
        array = arrives(items)
        assert array[1] is array
        assert shares(tensor, array[0])

    def test_what_is_exchanged_in_a_container_is_exchanged_for_the_caller(self, tensor):
        @dataclasses.dataclass
        class State:
            x: object

        items, named, state = [tensor], {"a": tensor, "b": tensor[0]}, State(tensor)

        def exchange(items, named, state):
            items.append(items[0][1])
            items[0] = items[0] * 2
            del named["b"]
            state.x = np.ones(2)
            return items

        assert with_arrays(exchange)(items, named, state) is items
        assert torch.equal(items[0], tensor * 2)
        assert torch.equal(items[1], tensor[1])
        assert items[1].data_ptr() == tensor[1].data_ptr()
        assert list(named) == ["a"]
        assert named["a"] is tensor
        assert torch.equal(state.x, torch.ones(2, dtype=torch.float64))

    @pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.complex64])
    def test_dtypes(self, dtype):
        tensor = torch.ones(3, dtype=dtype)
        array = arrives(tensor)
        assert array.dtype == tensor.numpy().dtype
        assert with_arrays(np.copy)(tensor).dtype == dtype

    @pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn"])
    def test_dtypes_of_ml_dtypes(self, name):
        ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: pip install ml_dtypes")
        tensor = torch.tensor([1.0, 2.0, -4.0]).to(getattr(torch, name))
        array = arrives(tensor)
        assert array.dtype == getattr(ml_dtypes, name)
        assert shares(tensor, array)
        found = with_arrays(np.copy)(tensor)
        assert found.dtype == tensor.dtype
        assert torch.equal(found.float(), tensor.float())

    def test_a_result_with_elements_of_no_bytes_stays_an_array(self):
        found = with_arrays(lambda array: np.ndarray(3, "V0", buffer=array))(torch.ones(3))
        assert isinstance(found, np.ndarray)
        assert found.itemsize == 0

    @pytest.mark.parametrize(
        "make",
        [
            lambda: torch.ones(1, 3).expand(2, 3),
            lambda: from_numpy(np.broadcast_to(1.0, (2, 3)), on_readonly="share"),
            lambda: from_buffer(bytes(8), on_readonly="share"),
        ],
        ids=["expanded", "over a read-only array", "over bytes"],
    )
    def test_memory_that_must_not_be_written_arrives_read_only(self, make):
        tensor = make()
        array = arrives(tensor)
        assert not array.flags.writeable
        assert shares(tensor, array)
        assert array.strides == tuple(step * tensor.itemsize for step in tensor.stride())
        assert not arrives([tensor])[0].flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            with_arrays(lambda x: x.fill(0))(tensor)
        assert arrives(torch.ones(2, 3)).flags.writeable


class TestResults:
    def test_an_array_becomes_a_tensor_over_its_memory(self):
        array = np.arange(6.0).reshape(2, 3)
        tensor = with_arrays(lambda: array)()
        assert shares(tensor, array)

    def test_an_argument_is_the_same_tensor(self, tensor):
        assert with_arrays(lambda x: x)(tensor) is tensor
        assert with_arrays(lambda x: [x])(tensor)[0] is tensor
        assert with_arrays(lambda x, out: np.multiply(x, 2, out=out))(tensor, out=tensor) is tensor
        empty = torch.empty(0, 3)
        assert with_arrays(lambda x: x)(empty) is empty

    @given(strategies.data())
    def test_a_view_is_a_view_of_the_tensor(self, data):
        tensor = torch.arange(60).reshape(3, 4, 5).movedim(0, data.draw(strategies.integers(0, 2)))
        base = tensor[data.draw(strategies.integers(0, 1)) :]
        steps = strategies.builds(slice, *[strategies.integers(0, 5)] * 2, strategies.integers(1, 3))
        index = tuple(data.draw(strategies.lists(strategies.integers(0, 1) | steps, min_size=1, max_size=3)))
        got, expected = with_arrays(operator.getitem)(base, index), base[index]
        if isinstance(got, np.generic):  # a full index
            assert got == expected
            return
        assert torch.equal(got, expected)
        if got.numel():
            assert got.untyped_storage()._cdata == tensor.untyped_storage()._cdata
            assert got.data_ptr() == expected.data_ptr()
            assert got._is_view()
            version = tensor._version
            got.add_(1)
            assert tensor._version == version + 1

    def test_views_that_torch_lacks_are_copied_or_refused(self, tensor):
        flipped = with_arrays(np.flip)(tensor)
        assert torch.equal(flipped, tensor.flip(0, 1))
        assert flipped.is_contiguous()
        with pytest.raises(ValueError, match="negative strides"):
            with_arrays(np.flip, may_copy=False)(tensor)
        assert torch.equal(with_arrays(lambda x: x.view(np.int32))(tensor), tensor.view(torch.int32))
        assert torch.equal(with_arrays(lambda x: x.astype(">f4"))(tensor), tensor)
        assert torch.equal(with_arrays(np.broadcast_to)(tensor[0], (2, 4)), tensor[0].expand(2, 4))

    def test_read_only_arrays_are_copied_or_refused(self):
        array = np.arange(3.0)
        array.flags.writeable = False
        tensor = with_arrays(lambda: array)()
        tensor += 1
        assert array[0] == 0
        with pytest.raises(ValueError, match="read-only"):
            with_arrays(lambda: array, may_copy=False)()

    def test_what_torch_lacks_stays(self):
        for one in (
            np.array(["a"]),
            np.array([None]),
            np.array(["2020-01-01"], "M8[D]"),
            np.zeros(2, np.longdouble),
            np.zeros(2, [("x", "f4")]),
            np.ma.masked_array([1, 2], [True, False]),
        ):
            assert with_arrays(lambda one=one: one)() is one

    def test_a_read_only_array_in_an_arguments_memory_is_a_view(self):
        """The tensor's memory is the caller's, and torch has no read-only tensors."""

        def locked(x, index):
            part = x[index]
            part.flags.writeable = False
            return part

        tensor = torch.zeros(3)
        for may_copy in (True, False):
            found = with_arrays(locked, may_copy=may_copy)(tensor, slice(1, None))
            assert found._base is tensor
            found.add_(1)
        assert tensor.tolist() == [0, 2, 2]

    def test_scalars_stay(self, tensor):
        for one in (np.float64(2), np.float32(2), np.bool_(True), 1, "a", None):
            assert with_arrays(lambda _, one=one: one)(tensor) is one
        assert with_arrays(np.asarray)(2.5).shape == ()

    def test_containers(self, tensor):
        found = with_arrays(lambda x: {"a": (x, [x * 2]), "b": 1})(tensor)
        assert found["a"][0] is tensor
        assert torch.equal(found["a"][1][0], tensor * 2)
        assert found["b"] == 1
        items = [1, "a"]
        assert with_arrays(lambda: items)() is items
        u, s, vh = with_arrays(np.linalg.svd)(tensor)
        assert torch.allclose(u @ torch.diag(s) @ vh[:3], tensor, atol=1e-5)
        assert type(with_arrays(np.linalg.svd)(tensor)).__name__ == "SVDResult"

    def test_results_of_scipy(self, tensor):
        found = with_arrays(optimize.minimize)(lambda x: ((x - 1) ** 2).sum(), torch.zeros(2, dtype=torch.float64))
        assert type(found) is optimize.OptimizeResult
        assert torch.allclose(found.x, torch.ones(2, dtype=torch.float64), atol=1e-5)
        test = with_arrays(stats.ttest_ind)(tensor.double(), tensor.double() + 1)
        assert isinstance(test.pvalue, torch.Tensor) == isinstance(test[1], torch.Tensor)
        assert isinstance(test[1], torch.Tensor)
        assert isinstance(test.df, torch.Tensor)  # not an item of the tuple
        found = torch.max(tensor, 0)
        assert type(arrives(found)) is type(found)


class TestWhatIsNotPlainMemory:
    def test_gradients_are_refused_by_name(self, tensor):
        weight = tensor.requires_grad_()

        def norm(x, weight):
            return np.linalg.norm(x * weight)

        with pytest.raises(RuntimeError, match=r"^argument 'weight' of norm requires grad.*\.detach\(\)"):
            with_arrays(norm)(tensor.detach(), weight)
        with pytest.raises(RuntimeError, match=r"^argument 'x'\[1\]\['w'\] of norm requires grad"):
            with_arrays(norm)([1, {"w": weight}], 2)
        with pytest.raises(RuntimeError, match=r"^argument 'kernel' of <lambda> requires grad"):
            with_arrays(lambda **named: named)(kernel=weight)
        with torch.no_grad():
            assert with_arrays(norm)(tensor, weight) > 0

    def test_or_detached(self, tensor):
        weight = torch.nn.Parameter(tensor)
        found = with_arrays(lambda x: (x, x[1:], x * 2), gradients="detach")(weight)
        assert not any(one.requires_grad for one in found)
        assert found[0].data_ptr() == weight.data_ptr()
        assert found[1].data_ptr() == weight[1:].data_ptr()

    def test_conjugation_and_negation(self):
        z = torch.tensor([1 + 2j, 3j])
        for lazy in (z.conj(), z.conj().imag):
            assert np.array_equal(arrives(lazy), lazy.resolve_conj().resolve_neg().numpy())
            with pytest.raises(ValueError, match="read-only"):
                with_arrays(lambda x: x.fill(0))(lazy)
            assert with_arrays(lambda x: x)(lazy) is lazy
            with pytest.raises(RuntimeError, match="argument 'given' of <lambda>"):
                arrives(lazy, may_copy=False)

    def test_other_devices(self):
        meta = torch.empty(2, device="meta")
        with pytest.raises(TypeError, match=r"argument 'x' of f must be on device cpu, got meta; copy it with \.cpu"):
            with_arrays(types.FunctionType((lambda x: x).__code__, {}, "f"))(meta)
        with pytest.raises(TypeError, match="must be on device cpu or cuda, got meta"):
            arrives(meta, devices=("cpu", "cuda"))

    @pytest.mark.cuda
    def test_cuda(self):
        x = torch.arange(4.0, device="cuda")
        with pytest.raises(TypeError, match="must be on device cpu, got cuda:0"):
            with_arrays(np.cumsum)(x)
        wrapped = with_arrays(np.cumsum, devices=("cpu", "cuda"))
        assert torch.equal(wrapped(x), x.cumsum(0))
        assert wrapped(x).device == x.device
        assert with_arrays(lambda x: x, devices=("cuda",))(x) is x
        assert torch.equal(with_arrays(lambda x: x[1:], devices=("cuda",))(x), x[1:])
        with pytest.raises(ValueError, match="read-only"):
            with_arrays(lambda x: x.fill(0), devices=("cuda",))(x)
        with pytest.raises(TypeError, match="must be on device cpu or cuda"):
            with_arrays(np.cumsum, devices=("cpu", "cuda"), may_copy=False)(x)

    @pytest.mark.parametrize(
        "make",
        [
            lambda x: x.to_sparse(),
            lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
            lambda x: torch._efficientzerotensor(3),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*:UserWarning")
    def test_layouts_are_refused_by_name(self, make, tensor):
        with pytest.raises((TypeError, ValueError), match=r"^argument 'given' of <lambda> must"):
            arrives(make(tensor))

    def test_fake_tensors_are_refused_by_name(self, tensor):
        with FakeTensorMode() as mode:
            fake = mode.from_tensor(tensor)
            for given in (fake, [fake]):
                with pytest.raises(TypeError, match=r"^argument 'given'.* of <lambda> must .*FakeTensor"):
                    arrives(given)

    def test_transforms_are_refused(self, tensor):
        with pytest.raises((TypeError, RuntimeError), match=r"^argument 'a' of cumsum"):
            torch.vmap(with_arrays(np.cumsum))(tensor)

    def test_a_subclass_decides(self, tensor):
        calls = []

        class Logged(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                calls.append(function)
                return super().__torch_function__(function, types, args, kwargs or {})

        wrapped = with_arrays(np.cumsum)
        logged = tensor.as_subclass(Logged)
        calls.clear()
        found = wrapped(logged, axis=0)
        assert wrapped in calls
        assert type(found) is Logged  # as with torch's own functions
        assert torch.equal(found.as_subclass(torch.Tensor), tensor.cumsum(0))
        assert type(wrapped([logged[0]])) is Logged

    def test_a_mode_sees_the_call(self, tensor):
        class Seen(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                calls.append(function)
                return function(*args, **(kwargs or {}))

        calls, wrapped = [], with_arrays(np.cumsum)
        with Seen():
            found = wrapped(tensor, axis=1)
        assert calls == [wrapped]
        assert torch.equal(found, tensor.cumsum(1))
        with torch.device("meta"):  # a mode for new tensors does not apply
            assert torch.equal(wrapped(tensor, axis=1), tensor.cumsum(1))

    def test_a_real_tensor_in_fake_mode(self, tensor):
        """The function works on the memory, and torch makes the new tensor a fake one, as torch.from_numpy does."""

        def double(x, out):
            out[...] = x * 2
            return x * 2

        out = torch.zeros_like(tensor)
        with FakeTensorMode():
            found = with_arrays(double)(tensor, out)
            assert type(torch.from_numpy(np.ones(2))) is type(found)
        assert type(found) is FakeTensor
        assert found.shape == tensor.shape
        assert torch.equal(out, tensor * 2)

    def test_a_dispatch_mode_sees_only_how_results_are_made(self, tensor):
        class Seen(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                calls.append(function.overloadpacket)
                return function(*args, **(kwargs or {}))

        calls = []
        with Seen():
            with_arrays(np.cumsum)(tensor)
            assert set(calls) == {torch.ops.aten.lift_fresh}
            with_arrays(operator.getitem)(tensor, slice(1, None))
        assert calls[-1] is torch.ops.aten.as_strided

    def test_inference_mode(self, tensor):
        part, weight = with_arrays(lambda x: x[1:]), tensor.clone().requires_grad_()
        with torch.inference_mode():
            made = torch.ones(3)
            assert with_arrays(np.cumsum)(weight).is_inference()
            assert not part(tensor).is_inference()  # as with torch's own views
            assert not tensor[1:].is_inference()
        assert part(made).is_inference()
        assert not with_arrays(np.cumsum)(made).is_inference()
        with_arrays(lambda out: out.fill(5), mutates_args=["out"])(made)
        assert made.tolist() == [5, 5, 5]

    def test_memory_is_not_resized_meanwhile(self, tensor):
        tensor = tensor.clone()
        array = arrives(tensor)
        with pytest.raises(RuntimeError, match="not resizable"):
            tensor.resize_(1000)
        assert tensor.data_ptr() == array.__array_interface__["data"][0]


class TestWrites:
    def test_are_counted_where_they_are_announced(self, tensor):
        def clear(x, out):
            out[...] = 0

        for mutated, args, kwargs in (
            (["out"], (1, tensor), {}),
            ([1], (1, tensor), {}),
            (["out"], (1,), {"out": [tensor]}),
        ):
            version = tensor._version
            with_arrays(
                clear if not isinstance(kwargs.get("out"), list) else lambda x, out: out[0].fill(0),
                mutates_args=mutated,
            )(*args, **kwargs)
            assert tensor._version == version + 1
        version = tensor._version
        with_arrays(clear)(1, tensor)
        assert tensor._version == version

    def test_backward_finds_out(self, tensor):
        x = tensor.clone().requires_grad_()
        y = x * tensor
        with_arrays(lambda out: out.fill(0), mutates_args=["out"])(tensor)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


class TestFunctions:
    def test_a_wrapped_function_looks_like_it(self):
        def f(x, *, scale=2):
            """Doc."""

        wrapped = with_arrays(f)
        assert (wrapped.__name__, wrapped.__doc__, wrapped.__wrapped__) == ("f", "Doc.", f)
        assert inspect.signature(wrapped) == inspect.signature(f)

    def test_as_a_decorator_also_of_methods(self, tensor):
        class Model:
            @with_arrays
            def double(self, x):
                assert type(x) is np.ndarray
                return x * 2

            @staticmethod
            @with_arrays(gradients="detach")
            def triple(x):
                return x * 3

        assert torch.equal(Model().double(tensor), tensor * 2)
        assert torch.equal(Model.triple(tensor.clone().requires_grad_()), tensor.detach() * 3)

    def test_generator_and_coroutine_functions_are_rejected(self):
        def generator(x):
            yield x

        async def coroutine(x):
            return x

        async def both(x):
            yield x

        for function in (generator, coroutine, both):
            for one in (function, staticmethod(function)):
                with pytest.raises(TypeError, match=f"returns its result, got {function.__name__}, a generator or"):
                    with_arrays(one)
            with pytest.raises(TypeError, match="a generator or"):
                with_arrays(functools.partial(function, 1))
            with pytest.raises(TypeError, match="a generator or"):
                with_arrays(op="a::b")(function)

    def test_a_generator_of_an_object_yields_arrays(self, tensor):
        class Split:
            def parts(self, x):
                yield from (x[:1], x[1:])

        assert [type(part) for part in with_arrays(Split()).parts(tensor)] == [np.ndarray] * 2

    def test_errors_are_those_of_the_function(self, tensor):
        def fail(x):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine") as caught:
            with_arrays(fail)(tensor)
        assert caught.value.__context__ is None
        with pytest.raises(np.linalg.LinAlgError):
            with_arrays(np.linalg.inv)(tensor)

    def test_callbacks(self, tensor):
        kinds = []

        def loss(x):
            kinds.append(type(x))
            return ((x - 1) ** 2).sum()

        def gradient(x):
            return torch.func.grad(lambda x: ((x - 1) ** 2).sum())(x)

        start = torch.zeros(3, dtype=torch.float64)
        bounds = {"fun": lambda x: x.sum() - 1, "type": "ineq"}
        minimize = with_arrays(optimize.minimize, callbacks=True)
        found = minimize(loss, start, jac=gradient, constraints=[bounds], method="SLSQP")
        assert set(kinds) == {torch.Tensor}
        assert torch.allclose(found.x, torch.ones_like(start), atol=1e-4)
        with_arrays(optimize.minimize)(lambda x: kinds.append(type(x)) or (x**2).sum(), start)
        assert kinds[-1] is np.ndarray

    def test_callbacks_that_return_what_requires_grad(self):
        weight = torch.ones(2, dtype=torch.float64, requires_grad=True)

        def apply(function, x):
            return function(x)

        def loss(x):
            return x * weight

        with pytest.raises(RuntimeError, match=r"^the result of loss requires grad"):
            with_arrays(apply, callbacks=True)(loss, weight.detach())
        found = with_arrays(apply, callbacks=True, gradients="detach")(loss, weight.detach())
        assert torch.equal(found, weight.detach())

    def test_threads(self, tensor):
        wrapped, wrong = with_arrays(np.cumsum), []

        def work(n):
            mine = torch.full((50,), float(n))
            for _ in range(200):
                if not torch.equal(wrapped(mine), mine.cumsum(0)):
                    wrong.append(n)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


class Library:
    """A class of a NumPy-only library."""

    scale = np.ones(2)

    def fit(self, x):
        assert type(x) is np.ndarray
        self.mean_ = x.mean(0)
        return self

    def transform(self, x):
        assert type(x) is np.ndarray
        assert type(self.mean_) is np.ndarray  # arrays inside the library
        return self.apply(x)

    def apply(self, x):
        assert type(x) is np.ndarray
        return x - self.mean_

    def __call__(self, x):
        return self.apply(x)

    def __getitem__(self, i):
        return self.mean_[i]

    def __setitem__(self, i, value):
        self.mean_[i] = value

    def __len__(self):
        return len(self.mean_)

    def __iter__(self):
        return iter([self.mean_])

    def __contains__(self, one):
        return one.ndim == 1

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.left = True


class TestStandIns:
    def test_a_module(self, tensor):
        solver = with_arrays(linalg)
        assert solver.__wrapped__ is linalg
        assert torch.allclose(solver.pinv(tensor), torch.linalg.pinv(tensor), atol=1e-5)
        assert solver.pinv is solver.pinv
        assert "pinv" in dir(solver)
        assert repr(solver).startswith("with_arrays(<module 'scipy.linalg'")
        assert torch.equal(with_arrays(np).fft.fft(tensor), with_arrays(np.fft).fft(tensor))
        assert with_arrays(np).pi == np.pi
        with pytest.raises(AttributeError, match="nothing"):
            solver.nothing  # noqa: B018

    def test_a_class(self, tensor):
        made = with_arrays(Library)()
        expected = tensor - tensor.mean(0)
        assert torch.equal(made.fit(tensor).transform(tensor), expected)
        assert made.fit(tensor) is made
        assert torch.equal(made(tensor), expected)
        assert torch.equal(made.mean_, tensor.mean(0))
        assert made.mean_.data_ptr() == made.__wrapped__.mean_.__array_interface__["data"][0]
        assert torch.equal(made[1:], tensor.mean(0)[1:])
        made[0] = torch.tensor(7.0)
        assert made.mean_[0] == 7
        assert len(made) == 4
        assert torch.equal(next(iter(made)), made.mean_)
        assert tensor[0] in made
        assert tensor not in made
        with made as entered:
            assert entered is made
        assert made.left is True
        made.mean_ = tensor[0]
        assert shares(tensor[0], made.__wrapped__.mean_)
        del made.mean_
        assert not hasattr(made, "mean_")

    def test_one_of_scipy(self, tensor):
        tree = with_arrays(spatial.KDTree)(tensor)
        distances, indices = tree.query(tensor + 0.1)
        assert torch.equal(indices, torch.arange(3))
        assert distances.dtype == torch.float64

    def test_a_stand_in_as_an_argument(self, tensor):
        made = with_arrays(Library)()
        assert arrives(made) is made.__wrapped__
        assert arrives([made])[0] is made.__wrapped__

    def test_a_copy_and_a_pickle(self, tensor):
        made = with_arrays(Library)().fit(tensor)
        for other in (copy.copy(made), pickle.loads(pickle.dumps(made))):
            assert torch.equal(other.transform(tensor), made.transform(tensor))

    def test_a_callable_object(self, tensor):
        add = with_arrays(np.add)
        assert torch.equal(add(tensor, 1), tensor + 1)
        assert torch.equal(add.reduce(tensor), tensor.sum(0))


@pytest.mark.unchecked(by="leaks", reason="torch.compile keeps what it has compiled")
class TestCompile:
    def test_it_is_one_opaque_call(self):
        def double(x):
            return np.multiply(x, 2)  # torch.compile would trace this if it entered the function

        wrapped, counter = with_arrays(double), CompileCounter()

        def model(x):
            return wrapped(x.sin()).cos()

        x = torch.randn(4)
        assert torch.equal(torch.compile(model, backend=counter)(x), model(x))
        assert (counter.frame_count, counter.op_count) == (2, 2)  # sin, cos
        with pytest.raises(torch._dynamo.exc.Unsupported, match=r"double works on NumPy.*op='namespace::name'"):
            torch.compile(model, fullgraph=True, backend=CompileCounter())(x)

    def test_of_many_functions(self):
        """Many wrappers work in one compiled function, although Dynamo limits recompilations of their code object."""
        counter = CompileCounter()
        wrapped = [with_arrays(lambda x, i=i: x + i) for i in range(20)]

        @torch.compile(backend=counter)
        def model(x):
            for one in wrapped:
                x = one(x)
            return x * 2

        assert torch.equal(model(torch.ones(2)), torch.full((2,), 2 * (1.0 + sum(range(20)))))

    def test_of_a_module(self):
        numpy, counter = with_arrays(np), CompileCounter()
        add, made, x = with_arrays(np.add), with_arrays(Library)(), torch.randn(4, 2, dtype=torch.float64)
        made.fit(x)
        expected = x.sin().flatten().cumsum(0).cos().sum() + (x - x.mean(0))
        model = torch.compile(lambda x: add(numpy.cumsum(x.sin()).cos().sum(), made.transform(x)), backend=counter)
        assert torch.allclose(model(x), expected)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((np.sum,), {"gradients": "maybe"}, ValueError, "must be 'refuse' or 'detach', got 'maybe'"),
        (
            (np.sum,),
            {"devices": "cuda"},
            TypeError,
            r"must be a sequence of strings, got 'cuda'; write \('cuda',\)",
        ),
        ((np.sum,), {"mutates_args": "out"}, TypeError, "'mutates_args' must be a sequence of strings"),
        ((np.sum,), {"vjp": 3}, TypeError, "'vjp' must be callable or None, got int"),
        ((np.sum,), {"fake": np.sum}, ValueError, "name the operator with op="),
        ((np.sum,), {"vjp": np.sum, "mutates_args": ["a"]}, ValueError, "leave 'mutates_args' out"),
        ((np,), {"vjp": np.sum}, TypeError, "'vjp' needs a function as 'target', got module"),
        ((np,), {"op": "a::b"}, TypeError, "'op' needs a function as 'target', got module"),
        *(
            ((target,), {}, TypeError, f"must be a function, .* of a library, got {type(target).__name__}")
            for target in (torch.ones(2), np.ones(2), "scipy.signal", 5)
        ),
    ],
)
def test_wrong_options(arguments, options, error, message):
    with pytest.raises(error, match=message):
        with_arrays(*arguments, **options)


class TestMutatesArgs:
    @pytest.mark.parametrize("mutated", [("x",), (0,)])
    @pytest.mark.parametrize("by_name", [True, False])
    @pytest.mark.parametrize("fails", [True, False])
    def test_versions_are_counted_up(self, mutated, by_name, fails):
        def fill(x):
            x[:] = 7
            if fails:
                raise KeyError("afterwards")

        f, x = with_arrays(fill, mutates_args=mutated), torch.ones(2)
        with pytest.raises(KeyError) if fails else contextlib.nullcontext():
            f(x=x) if by_name else f(x)
        assert x._version > 0

    def test_all_that_are_given(self):
        f = with_arrays(lambda *xs: [x.fill(1) for x in xs] and None, mutates_args=("xs",))
        tensors = torch.zeros(2), torch.zeros(3)
        f(*tensors)
        assert all(one._version > 0 for one in tensors)

    @pytest.mark.parametrize("wrong", ["ouput", 1, -1])
    def test_a_parameter_that_there_is_not(self, wrong):
        with pytest.raises(ValueError, match=rf"which are x; got {wrong!r}"):
            with_arrays(lambda x: None, mutates_args=(wrong,))


def test_what_a_callback_writes_arrives_where_memory_cannot_be_shared():
    def library(callback):
        a = np.zeros(3)
        callback(a[::-1])
        return a

    def write(t):
        t.copy_(torch.arange(3.0))

    written = with_arrays(library, callbacks=True)(write)
    assert written.tolist() == [2.0, 1.0, 0.0]


def test_a_list_that_was_changed_before_an_error():
    def change(items):
        items[0] = items[0] * 2
        raise KeyError("afterwards")

    items = [torch.ones(2)]
    with pytest.raises(KeyError):
        with_arrays(change)(items)
    assert items[0].tolist() == [2.0, 2.0]


class TestObjects:
    class Holder:
        def __init__(self):
            self.ws, self.buffer = [np.ones(2)], []

        def __len__(self):
            return 0

        def __iter__(self):
            for i in range(3):
                self.buffer[:] = [np.array(i)]
                yield self.buffer

        def __delitem__(self, key):
            self.gone = key

    class OwnError(Exception):
        pass

    def test_a_list_of_an_object_is_written_to(self):
        wrapped = self.Holder()
        holder = with_arrays(wrapped)
        holder.ws[0] = torch.zeros(2)
        holder.ws.append(torch.full((2,), 3.0))
        assert [one.tolist() for one in wrapped.ws] == [[0.0, 0.0], [3.0, 3.0]]
        assert all(type(one) is np.ndarray for one in wrapped.ws)

    def test_an_iterator_that_yields_one_list(self):
        assert [one[0].item() for one in with_arrays(self.Holder())] == [0, 1, 2]

    def test_truth_and_deletion(self):
        holder = with_arrays(self.Holder())
        assert not holder
        del holder["a"]
        assert holder.gone == "a"
        assert with_arrays(np)

    def test_classes(self):
        assert with_arrays(self).OwnError is self.OwnError
        assert isinstance(np.float64(1), with_arrays(np).floating)
        stand_in = with_arrays(self.Holder)
        assert isinstance(stand_in(), stand_in)
        assert isinstance(self.Holder(), stand_in)
        assert not isinstance(1, stand_in)
        assert issubclass(self.Holder, stand_in)


class TestWhatFunctionsDo:
    """What library functions do with arrays besides returning them."""

    def test_masks_are_never_dropped(self):
        x = torch.tensor([-1.0, 2.0])
        for copied in (True, False):
            for tensor in (x, x.abs()):
                found = with_arrays(np.ma.masked_less)(tensor, 0, copy=copied)
                assert type(found) is np.ma.MaskedArray
                assert (found.mask == (tensor < 0).numpy()).all()

    @pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
    @pytest.mark.parametrize("attribute", ["shape", "strides", "dtype"])
    def test_an_array_that_is_changed_in_place_comes_back_so(self, attribute):
        x = torch.arange(4.0).reshape(2, 2)
        value = {"shape": (4, 1), "strides": (4, 8), "dtype": np.dtype(np.int32)}[attribute]

        def changed(array):
            setattr(array, attribute, value)
            return array

        found, wanted = with_arrays(changed)(x), changed(x.numpy().copy())
        np.testing.assert_array_equal(found.numpy(), wanted)
        assert found.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        found.zero_()
        assert x._version == 1

    @pytest.mark.parametrize(
        "view",
        [
            pytest.param(
                np.lib.stride_tricks.as_strided,
                marks=pytest.mark.unchecked(by="leaks", reason="NumPy's function keeps a reference to None"),
            ),
            lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, writeable=True),
            lambda x: np.asarray(memoryview(x))[1:],
            lambda x: x.view(np.int32)[2:],
            lambda x: x.view(np.complex128)[1:],
            lambda x: x.view(type("Own", (np.ndarray,), {}))[1:][1:],
        ],
    )
    def test_all_views_are_views_of_the_tensor(self, view):
        x = torch.arange(6.0, dtype=torch.float64)
        found = with_arrays(view)(x)
        np.testing.assert_array_equal(found.numpy(), view(x.numpy()))
        found.zero_()
        assert x._version == 1
        np.testing.assert_array_equal(found.numpy(), view(x.numpy()))

    def test_the_parts_of_complex_numbers(self):
        x = torch.tensor([1 + 2j, 3 - 4j])
        for part in (np.real, np.imag):
            found = with_arrays(part)(x[1:])
            assert found.tolist() == part(x[1:].numpy()).tolist()
            assert found._base is not None
            assert found.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()

    def test_what_a_function_leaves_as_it_was_stays_the_callers(self):
        parameter, array = torch.nn.Parameter(torch.ones(2)), np.ones(2)
        state = {"w": parameter, "a": array, "step": 0, "v": torch.ones(1)}

        def step(state):
            state["step"] += 1
            state["v"] = state["v"] + 1

        with torch.no_grad():
            with_arrays(step)(state)
        assert state["w"] is parameter
        assert state["a"] is array
        assert state["step"] == 1
        assert state["v"].equal(torch.tensor([2.0]))

    def test_attributes_that_a_method_sets(self):
        @dataclasses.dataclass
        class Model:
            w: torch.Tensor

            @with_arrays
            def fit(self, y):
                self.coef_ = self.w * y
                return self

        model = Model(torch.ones(2))
        model.old = 1
        assert model.fit(torch.arange(2.0)) is model
        assert model.coef_.equal(torch.tensor([0.0, 1.0]))
        assert model.old == 1

    def test_dicts_of_other_classes(self):
        class NoUpdate(dict):
            def update(self, *_):
                raise TypeError("no update")

        def double(d):
            d["a"] = d["a"] * 2
            return collections.Counter(a=1), d

        x = NoUpdate(a=torch.ones(2), b=1)
        counter, found = with_arrays(double)(x)
        assert found is x
        assert found["a"].equal(torch.full((2,), 2.0))
        assert counter == collections.Counter(a=1)
        counted = with_arrays(lambda x: collections.Counter(a=x))(torch.ones(1))
        assert list(counted) == ["a"]
        assert isinstance(counted["a"], torch.Tensor)

    def test_a_named_tuple_is_not_made_by_its_own_code(self):
        class Pair(collections.namedtuple("Pair", "a n")):
            def __new__(cls, a, n):
                return super().__new__(cls, a, n + 1)

        assert with_arrays(lambda pair: pair.n)(Pair(torch.ones(1), 1)) == 2

    def test_one_array_for_one_tensor(self):
        x, y = torch.ones(2), torch.ones(2)
        same = with_arrays(lambda a, b, c=None: (a is b, a is c))
        assert same(x, x, c=x) == (True, True)
        assert same(x, y, c=x) == (False, True)
        assert same(a=x, b=x) == (True, False)

    def test_the_functions_own_error_is_raised(self):
        def bad(d):
            d["w"].fill(7)
            d["s"] = np.ones(2)[::-1]
            raise KeyError("mine")

        w = torch.ones(2)
        with pytest.raises(KeyError, match="mine") as raised:
            with_arrays(bad, may_copy=False, mutates_args=["d"])({"w": w})
        assert "could not write back" in raised.value.__notes__[0]
        assert w._version == 1
        assert w.tolist() == [7, 7]

    def test_static_and_class_methods(self):
        class Own:
            @with_arrays
            @staticmethod
            def static(x):
                return x + 1

            @with_arrays
            @classmethod
            def of_class(cls, x):
                return cls, x + 1

        assert Own.static(torch.ones(1)).item() == 2
        assert Own().of_class(torch.ones(1))[0] is Own


class TestCallbacksThatWrite:
    """A callback's writes to its tensors reach the caller's arrays, even if these could not be shared."""

    @staticmethod
    def called(library, callback):
        return with_arrays(library, callbacks=True)(callback, torch.zeros(3)).tolist()

    def test_beside_an_overlapping_copy(self):
        def library(callback, x):
            callback(x, x[::-1])
            return x

        def callback(a, _):
            a[0] = 5

        assert self.called(library, callback) == [5, 0, 0]

    def test_in_keywords_and_containers_and_before_an_error(self):
        def library(callback, x):
            callback(buf=x[::-1])
            callback([x[::-1][1:]])
            with contextlib.suppress(KeyError):
                callback(fails=x[::-1][2:])
            return x

        def callback(several=(), buf=None, fails=None):
            for one in (*several, buf, fails):
                if one is not None:
                    one[0] += 5
            if fails is not None:
                raise KeyError

        assert self.called(library, callback) == [5, 5, 5]

    def test_callable_objects_stay_themselves(self):
        class Model:
            k = 3

            def __call__(self, x):
                assert isinstance(x, torch.Tensor)
                return x * self.k

            @with_arrays(callbacks=True)
            def fit(self, x):
                self.fitted = self(x)

        def library(model, x):
            assert isinstance(model, Model)
            return model(x) * model.k

        model = Model()
        assert with_arrays(library, callbacks=True)(model, torch.ones(1)).item() == 9
        model.fit(torch.ones(1))
        assert model.fitted.item() == 3


class TestStandInsAsObjects:
    def test_an_attribute_that_compares_by_element(self):
        class Elementwise:
            def __eq__(self, other):
                return np.zeros(2, dtype=bool)

            __ne__ = __eq__
            __hash__ = None

            def __call__(self, x):
                return x

        module = types.ModuleType("module")
        module.function = Elementwise()
        wrapped = with_arrays(module)
        first = wrapped.function
        assert wrapped.function is first
        assert first(torch.ones(2)).equal(torch.ones(2))
        module.function = Elementwise()
        assert wrapped.function is not first
        module.function = abs
        assert wrapped.function(torch.tensor([-1.0])).equal(torch.ones(1))

    def test_a_copy_is_another_object(self):
        class Own:
            v = 0

        one = with_arrays(Own())
        two = copy.copy(one)
        two.v = torch.ones(1)
        assert one.v == 0

    def test_operators(self):
        sparse = pytest.importorskip("scipy.sparse")
        a = with_arrays(sparse).csr_array(torch.eye(2) * 3)
        assert (a @ torch.ones(2)).equal(torch.full((2,), 3.0))
        assert ((a + a) @ torch.ones(2)).equal(torch.full((2,), 6.0))
        assert (-a @ torch.ones(2)).equal(torch.full((2,), -3.0))


class TestNested:
    def test_a_wrapped_helper_gives_views_of_the_argument(self):
        """So a backward pass finds out about writes, as without the outer wrapper."""
        double = with_arrays(lambda a: np.multiply(a, 2, out=a))
        step = with_arrays(lambda a: double(a))
        weight, x = torch.ones(2, requires_grad=True), torch.ones(2)
        loss = (weight * x).sum()
        y = step(x)
        assert y is x
        y.mul_(3)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
        part = with_arrays(lambda a: double(a)[1:])(x)
        assert part._base is x
        assert with_arrays(lambda a: torch.zeros(2))(x).tolist() == [0, 0]
        assert with_arrays(lambda a: x)(x) is x

    def test_also_in_containers(self):
        inner = with_arrays(lambda a: a[:1])
        x = torch.ones(2)
        (found,) = with_arrays(lambda a: [inner(a)])(x)
        assert found._base is x


def mesh():
    return np.meshgrid(np.arange(3), np.arange(2), copy=False)


class Unit(np.ndarray):
    def __array_function__(self, *_):
        return NotImplemented


class TestResultsThatShareMemory:
    def test_classes_with_functions_of_their_own(self):
        y = np.arange(4.0).view(Unit)
        whole, part = with_arrays(lambda: (y, y[1:]))()
        assert part._base is whole

    def test_of_rows_and_columns(self):
        """Chains of arrays that share elements."""
        y = np.zeros((4, 4))
        found = with_arrays(lambda: [*(y[:, i] for i in range(4)), *(y[i] for i in range(3))])()
        found[0].add_(1)
        assert {one._version for one in found} == {1}

    def test_of_one_array_and_its_neighbour(self):
        y = np.zeros((4, 2))
        first, part, other = with_arrays(lambda: (y[:, 0], y[:2, 0], y[:3, 1]))()
        other.add_(1)
        assert (first._version, part._version) == (0, 0)

    def test_files(self, tmp_path):
        y = np.memmap(tmp_path / "y", "f8", "w+", shape=6)
        first, second = with_arrays(lambda: (y[:4], y[1:]))()
        first.add_(1)
        assert second._version == 1

    @pytest.mark.parametrize(
        "make",
        [
            lambda y: (y, y[:1]),
            lambda y: (y[:1], y),
            lambda y: (y[:2], y[1:]),
            lambda y: [y[::2], {"odd": y[1:]}],
            lambda y: (y, y.reshape(1, 3)),
            lambda y: (y[:2], y[1:], y[1:2]),
            lambda y: (y[:2], y[1:], y[::-1]),
            lambda y: (y[:2], y[1:], np.lib.stride_tricks.sliding_window_view(y, 2)),
            lambda y: (y[:2], y[1:], np.zeros(3, "f4,i4"), y.view("V8")),
        ],
    )
    def test_they_have_one_version(self, make):
        found = with_arrays(lambda: make(np.ones(3)))()
        one, other = found[0], found[1]["odd"] if isinstance(found[1], dict) else found[1]
        before = one._version
        other.add_(1)
        assert one._version == before + 1

    def test_one_array_is_one_tensor(self):
        one, other, apart = with_arrays(lambda: (y := np.ones(3), y, np.ones(3)))()
        assert one is other
        before = one._version
        apart.add_(1)
        assert one._version == before

    @pytest.mark.parametrize("make", [lambda: np.split(np.arange(4), 2), lambda: np.nonzero(np.eye(2)), lambda: mesh()])
    def test_parts_that_do_not_overlap_have_versions_of_their_own(self, make):
        first, second = with_arrays(make)()
        assert (first._base, second._base) == (None, None)


class TestOthersThatWrite:
    def test_what_a_callback_appends_stays(self):
        def record(history, call):
            history.append(np.ones(1))
            call(np.full(1, 2.0))

        history = [torch.zeros(1)]
        with_arrays(record, callbacks=True)(history, lambda x: history.append(x))
        assert [one.item() for one in history] == [0, 2, 1]

    def test_what_a_callback_sets_stays(self):
        def record(log, call):
            log["n"] = np.ones(1)
            del log["old"]
            call()

        log = {"x": torch.zeros(1), "old": 1}
        with_arrays(record, callbacks=True)(log, lambda: log.update(log=5, old=2))
        assert list(log) == ["x", "log", "n"]
        assert type(log["n"]) is torch.Tensor

    def test_a_list_that_both_have_changed_is_the_functions(self):
        def record(history, call):
            history[0] = 7
            call()

        history = [torch.zeros(1)]
        with_arrays(record, callbacks=True)(history, lambda: history.append(1))
        assert history == [7]

    def test_a_tensor_that_gets_other_memory(self):
        x = torch.ones(2)

        def exchange(a):
            x.data = torch.zeros(2)
            a += 5
            return a

        assert with_arrays(exchange)(x).tolist() == [6, 6]
        assert x.tolist() == [0, 0]


class TestUnusualContainers:
    def test_tensors_as_keys(self):
        """As in the state of an optimizer."""
        p = torch.nn.Parameter(torch.ones(2))

        def step(state):
            state["steps"] = 1
            return {key: value["m"] for key, value in state.items() if key != "steps"}

        state = {p: {"m": torch.ones(2)}}
        found = with_arrays(step)(state)
        assert list(found) == [p]
        assert found[p] is state[p]["m"]
        assert state["steps"] == 1

    def test_tuples_with_a_constructor_of_their_own(self):
        class Pair(tuple):
            __slots__ = ()

            def __new__(cls, x, y):
                return super().__new__(cls, (x, y))

        found = with_arrays(lambda pair: (type(pair[0]), pair))(Pair(torch.ones(1), 2))
        assert found[0] is np.ndarray
        assert (type(found[1]), type(found[1][0]), found[1][1]) == (Pair, torch.Tensor, 2)

        class Handle(Pair):
            __slots__ = ()

        item = types.SimpleNamespace(a=1)
        assert with_arrays(lambda pair: pair[0] is item)(Pair(with_arrays(item), torch.ones(1)))
        handle = Handle(len, 1)  # as scipy.LowLevelCallable has a function
        assert with_arrays(lambda one: one, callbacks=True)(handle) is handle

    def test_what_cannot_be_copied_is_rejected(self):
        class Single(dict):
            def __copy__(self):
                return self

        def keep(d):
            return d

        own = Single(x=np.ones(1))
        assert with_arrays(lambda: own)() is own
        assert type(own["x"]) is np.ndarray
        given = Single(x=torch.ones(1))
        with pytest.raises(TypeError, match=r"^argument 'd' of keep must be in a container that can be copied"):
            with_arrays(keep)(given)
        assert type(given["x"]) is torch.Tensor


class TestCallbacksOfAnArgument:
    def test_its_layout_and_gradient_are_its_own(self):
        x = torch.ones(2, 3)
        call = with_arrays(lambda a, f: f(a), callbacks=True)
        found = call(x, lambda z: z.t_())
        assert found.shape == (3, 2)
        assert x.shape == (2, 3)
        found = call(x, lambda z: torch.autograd.grad((z.requires_grad_() ** 2).sum(), z)[0])
        assert found.tolist() == [[2] * 3] * 2
        assert not x.requires_grad
        with pytest.raises(RuntimeError, match=r"^the result of <lambda> requires grad"):
            call(x, lambda z: z.requires_grad_())
        square = torch.arange(4.0).reshape(2, 2)
        assert with_arrays(lambda f: np.array(f(square.numpy())), callbacks=True)(lambda z: z.t_()).tolist() == [
            [0, 2],
            [1, 3],
        ]
        with torch.inference_mode():
            made = torch.ones(2)
        found = call(made, lambda z: torch.autograd.grad((z.requires_grad_() ** 2).sum(), z)[0])
        assert found.tolist() == [2, 2]

    def test_it_is_the_argument(self):
        weight, x = torch.ones(2, requires_grad=True), torch.ones(2)
        loss = (weight * x).sum()
        assert with_arrays(lambda a, f: f(a), callbacks=True)(x, lambda z: z.mul_(7)) is x
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()

    def test_it_comes_back(self):
        def function(x):
            return x

        def identity(one, other):
            assert one is other
            return one

        assert with_arrays(identity, callbacks=True)(function, function) is function

    def test_after_the_call(self):
        kept = []
        with_arrays(lambda a, f: kept.append(f), callbacks=True)(torch.ones(2), lambda z: z + 1)
        assert kept[0](np.ones(2)).tolist() == [2, 2]

    @pytest.mark.parametrize("dtype", [np.float32, np.complex128, ">f8"])
    def test_a_write_of_a_negative_zero(self, dtype):
        def library(call):
            a = np.zeros(3, dtype)[::-1]
            call(a)
            return np.signbit(a.real).tolist()

        assert with_arrays(library, callbacks=True)(lambda x: x.fill_(-0.0)) == [True] * 3

    def test_another_dtype_of_the_copy(self):
        def library(call):
            a = np.zeros(3, np.float32)[::-1]
            call(a)
            return a.copy()

        def widen(x):
            x.data = torch.arange(3.0, dtype=torch.float64)

        assert with_arrays(library, callbacks=True)(widen).tolist() == [0, 1, 2]

    def test_a_nan_does_not_undo_another_write(self):
        memory = np.full(3, np.nan)

        def library(call):
            call(memory, memory[::-1])
            return memory.copy()

        written = with_arrays(library, callbacks=True)(lambda x, _: x.fill_(1))
        assert written.tolist() == [1, 1, 1]

    def test_a_new_shape_is_rejected_where_memory_cannot_be_shared(self):
        with pytest.raises(ValueError, match="must not resize its argument"):
            with_arrays(lambda f: f(np.ones(3)[::-1]), callbacks=True)(lambda x: x.unsqueeze_(0))


def test_an_argument_among_results_over_its_memory_is_the_argument():
    """Also behind a larger element type, or a part."""
    x = torch.arange(4.0)
    as_complex, own, part = with_arrays(lambda a: (a.view(np.complex64), a, a[1:]))(x)
    assert own is x
    assert part._base is x
    assert as_complex.data_ptr() == x.data_ptr()


def test_a_result_is_named_in_errors():
    def reverse(a):
        return {"x": (a[::-1], 1)}

    with pytest.raises(ValueError, match=r"^the result\['x'\]\[0\] of reverse must not have negative strides"):
        with_arrays(reverse, may_copy=False)(torch.ones(2))
    with pytest.raises(ValueError, match=r"^the result of <lambda> must not have negative strides"):
        with_arrays(lambda a: a[::-1], may_copy=False)(torch.ones(2))


@pytest.mark.parametrize("devices", [["gpu"], ["cuda:0"], ["meta"], [3], [torch.device("cpu")]])
def test_devices_are_types_of_devices_with_memory(devices):
    with pytest.raises(ValueError, match="argument 'devices' must contain types of devices that have memory"):
        with_arrays(seen, devices=devices)


def test_op_is_a_name():
    with pytest.raises(TypeError, match="argument 'op' must be a str such as 'namespace::name' or None, got int"):
        with_arrays(seen, op=3)
