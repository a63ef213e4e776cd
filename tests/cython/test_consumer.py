"""A module that is not ours, built from tests/projects/consumer as its author would, does what torch does."""

import gc
import re
import subprocess
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.native


class Subclass(torch.Tensor):
    """A tensor subclass with its own behaviour and attributes."""


class Liar:
    """isinstance() accepts it as a tensor; a type check in C does not."""

    __class__ = torch.Tensor


TENSORS = {
    "tensor": lambda: torch.randn(2, 3),
    "parameter": lambda: torch.nn.Parameter(torch.randn(2)),
    "subclass": lambda: torch.randn(2).as_subclass(Subclass),
    "buffer": lambda: torch.nn.Buffer(torch.randn(2)),
    "view": lambda: torch.randn(4, 4).t()[1:],
    "requires grad": lambda: torch.randn(2, requires_grad=True),
    "graph": lambda: torch.randn(2, requires_grad=True).exp(),
    "empty": lambda: torch.empty(0),
    "scalar": lambda: torch.tensor(1.5),
    "meta": lambda: torch.empty(2, device="meta"),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "complex": lambda: torch.randn(2, dtype=torch.complex64).conj(),
    "inference": lambda: _inference_tensor(),
}


def _inference_tensor():
    with torch.inference_mode():
        return torch.randn(3)


@pytest.fixture(params=TENSORS)
def tensor(request):
    """One tensor of each kind."""
    return TENSORS[request.param]()


class TestIdentity:
    def test_wrap_returns_the_same_object(self, consumer, tensor):
        assert consumer.roundtrip(tensor) is tensor
        assert consumer.unpack(tensor) is tensor

    def test_a_class_keeps_its_tensor_by_its_type(self, consumer, tensor):
        assert consumer.Accumulator(tensor).total is tensor

    def test_an_attribute_of_cpp_type_keeps_the_python_object(self, consumer):
        x = torch.randn(2).as_subclass(Subclass)
        x.note = "still here"
        holder = consumer.Native(x)
        del x
        gc.collect()
        assert type(holder.get()) is Subclass
        assert holder.get().note == "still here"

    def test_an_undefined_tensor_is_none(self, consumer):
        assert consumer.undefined() is None

    def test_a_result_shares_memory_only_with_itself(self, consumer):
        x = torch.ones(2, 3)
        y = consumer.linear(x, torch.eye(3))
        assert y is not x
        assert y.data_ptr() != x.data_ptr()


# Hypothesis keeps more data about its examples with each call. Plain tests below make the same calls.


class TestResults:
    """ATen through Cython gives what torch gives."""

    @settings(deadline=None, max_examples=50)
    @given(rows=st.integers(0, 5), inner=st.integers(1, 5), columns=st.integers(0, 5), seed=st.integers(0, 2**31))
    def test_linear(self, consumer, rows, inner, columns, seed):
        torch.manual_seed(seed)
        x, weight = torch.randn(rows, inner), torch.randn(columns, inner)
        torch.testing.assert_close(consumer.linear(x, weight), torch.nn.functional.linear(x, weight), rtol=0, atol=0)

    @settings(deadline=None, max_examples=50)
    @given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=4), data=st.data())
    def test_two_results(self, consumer, shape, data):
        x = torch.randn(shape)
        dim = data.draw(st.integers(-len(shape), len(shape) - 1))
        values, indices = consumer.maximum(x, dim)
        expected = torch.max(x, dim)
        assert torch.equal(values, expected.values)
        assert torch.equal(indices, expected.indices)

    def test_one_of_each(self, consumer):
        x, weight = torch.randn(3, 4), torch.randn(5, 4)
        assert torch.equal(consumer.linear(x, weight), torch.nn.functional.linear(x, weight))
        assert torch.equal(consumer.maximum(x, 1)[0], x.max(1).values)
        assert consumer.zeros([2, 0, 3]).shape == (2, 0, 3)

    def test_numbers_mean_what_they_say(self, consumer):
        """C++ and Cython choose the same overload. Each of these calls had, or could have, two different ones."""
        x = torch.randn(4, 5)
        expected = {
            "unbiased": torch.std(x, unbiased=True),
            "biased": torch.std(x, unbiased=False),
            "along": torch.std(x, dim=1),
            "along a variable": torch.var(x, dim=1),
            "along an int": torch.std(x, dim=1),
            "sorted along an int": torch.argsort(x, dim=1),
            "correction, int": torch.std(x, dim=0, correction=2),
            "repeated": torch.repeat_interleave(x, 2),
            "pseudo-inverse": torch.linalg.pinv(x, torch.tensor(0.5)),
            "above": x > 0.5,
            "below": x <= 1,
            "first value": x[0, 0].item(),
            "rounded down": torch.div(x, 0.5, rounding_mode="floor"),
            "correction": torch.std(x, dim=0, correction=2),
            "correction, double": torch.var(x, dim=0, correction=0.5),
            "stable": torch.sort(x, stable=True, dim=0, descending=True).values,
            "descending": torch.sort(x, dim=0, descending=True).values,
            "alpha": torch.add(x, x, alpha=2),
            "alpha, double": torch.sub(x, x, alpha=0.5),
            "int power": torch.pow(x, 2),
            "base": torch.pow(2, x),
            "clamp": torch.clamp(x, -1, 0.5),
            "full": torch.full((2,), 3, dtype=torch.int32),
            "arange": torch.arange(5),
            "arange, double": torch.arange(0.0, 1.0, 0.25),
        }
        computed = consumer.overloads(x)
        assert computed.keys() == expected.keys()
        for name, tensor in expected.items():
            torch.testing.assert_close(computed[name], tensor, rtol=0, atol=0, msg=lambda text, n=name: f"{n}: {text}")

    def test_operators(self, consumer):
        x = torch.randn(7)
        torch.testing.assert_close(consumer.normalised(x), (x - x.mean()) / x.std())

    @settings(deadline=None, max_examples=25)
    @given(shape=st.lists(st.integers(0, 3), max_size=5), kind=st.sampled_from([list, tuple]))
    def test_shapes_from_python(self, consumer, shape, kind):
        assert consumer.zeros(kind(shape)).shape == torch.Size(shape)

    def test_autograd_records_what_aten_does(self, consumer):
        x, weight = torch.randn(2, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)
        consumer.linear(x, weight).sum().backward()
        torch.testing.assert_close(weight.grad, x.detach().sum(0).expand(4, 3))

    def test_in_place_add_bumps_the_version(self, consumer):
        total = torch.zeros(3)
        accumulator = consumer.Accumulator(total)
        version = total._version
        accumulator.add(torch.ones(3))
        accumulator.add(torch.ones(3))
        assert torch.equal(total, torch.full((3,), 2.0))
        assert total._version == version + 2

    def test_a_preallocated_result_is_reused(self, consumer):
        weight = torch.randn(3, 4, requires_grad=True)
        projection = consumer.Projection(weight, 2)
        x = torch.randn(2, 3)
        out = projection(x)
        memory = out.data_ptr()
        assert torch.equal(out, (x @ weight).detach())
        assert not out.requires_grad
        assert projection(-x) is out
        assert out.data_ptr() == memory


# Each has a function of our consumer, the function of torch, and a function that makes the arguments of both.
FAILURES = {
    "shapes": ("mm", torch.mm, lambda: (torch.ones(2, 3), torch.ones(4, 5))),
    "shapes of linear": ("linear", torch.nn.functional.linear, lambda: (torch.ones(2, 3), torch.ones(4, 5))),
    "rank": ("mm", torch.mm, lambda: (torch.ones(2), torch.ones(2))),
    "index": ("select", torch.select, lambda: (torch.ones(2, 3), 0, 5)),
    "index of a scalar": ("select", torch.select, lambda: (torch.tensor(1.0), 0, 0)),
    "dimension": ("size", torch.Tensor.size, lambda: (torch.ones(2, 3), 7)),
    "dtypes differ": ("mm", torch.mm, lambda: (torch.ones(2, 2), torch.ones(2, 2, dtype=torch.int64))),
    "dtype": ("bitwise_not", torch.bitwise_not, lambda: (torch.ones(2),)),
    "not implemented": ("mm", torch.mm, lambda: (torch.ones(2, 2).to_sparse(), torch.ones(2, 2).to_mkldnn())),
    "singular": ("inverse", torch.linalg.inv, lambda: (torch.zeros(2, 2),)),
    "many lines": ("inverse", torch.linalg.inv, lambda: (torch.eye(2).to_sparse(),)),
    "negative size": ("zeros", torch.zeros, lambda: ((2, -1),)),
    "memory": ("zeros", torch.zeros, lambda: ((2**45,),)),
    "leaf in place": ("add_", torch.Tensor.add_, lambda: (torch.ones(2, requires_grad=True), torch.ones(2))),
}


class TestOptions:
    def test_a_tensor_that_is_made_requires_grad_if_they_say_so(self, consumer):
        x = torch.ones(4)
        for made in consumer.made_with_gradients(x):
            assert made.requires_grad
            assert made.is_leaf
            assert made.dtype is torch.float64
        assert not x.requires_grad

    def test_a_conversion_rejects_it(self, consumer):
        with pytest.raises(RuntimeError, match=r"cannot take a TensorOptions with options\.requires_grad"):
            consumer.converted_with_gradients(torch.ones(4))


class TestErrors:
    @pytest.mark.parametrize("failure", FAILURES)
    def test_the_class_and_first_line_are_torchs(self, consumer, failure):
        name, of_torch, arguments = FAILURES[failure]
        with pytest.raises(Exception) as expected:  # noqa: PT011  whatever torch raises
            of_torch(*arguments())
        with pytest.raises(expected.type) as raised:
            getattr(consumer, name)(*arguments())
        assert raised.type is expected.type
        assert str(raised.value) == str(expected.value).splitlines()[0]

    def test_a_message_of_several_lines_is_whole(self, consumer):
        with pytest.raises(RuntimeError) as raised:
            consumer.message_of_several_lines()
        assert str(raised.value) == "first line\n\nlast line"

    def test_the_cpp_backtrace_is_kept_on_request(self, bare, site):
        code = (
            "import consumer, torch\n"
            "try: consumer.zeros((2, -1))\n"
            "except RuntimeError as error: print(str(error).count(chr(10)))"
        )
        assert int(bare("import os; os.environ['TORCH_SHOW_CPP_STACKTRACES'] = '1'\n" + code, site)) > 5
        assert int(bare(code, site)) == 0

    @pytest.mark.parametrize(
        "wrong",
        [None, [1.0], 3, "x", torch, torch.Tensor, torch.Size([2]), pytest.param(Liar(), id="a liar")],
        ids=repr,
    )
    def test_what_is_no_tensor(self, consumer, wrong):
        with pytest.raises(TypeError, match=r"expected Tensor, got [\w.]+"):
            consumer.roundtrip(wrong)
        with pytest.raises(TypeError, match=r"argument 'obj' must be a torch.Tensor, got .*torch.as_tensor"):
            consumer.unpack(wrong)
        if wrong is not None:  # a typed attribute of a cdef class may be None
            with pytest.raises(TypeError, match=r"Cannot convert [\w.]+ to Tensor"):
                consumer.Accumulator(torch.ones(2)).replace(wrong)

    def test_none_where_the_declaration_allows_it(self, consumer):
        with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'cdata'"):
            consumer.numel(None)
        with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'cdata'"):
            consumer.dim_of_default(None)
        accumulator = consumer.Accumulator(torch.ones(2))
        accumulator.replace(None)
        with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'cdata'"):
            accumulator.add(torch.ones(2))

    def test_nothing_is_printed(self, site):
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); import consumer, torch\n"
            "one = torch.ones(2)\n"
            "for call in (lambda: consumer.numel(None), lambda: consumer.mm(one, one), consumer.guard_and_raise):\n"
            "    try: call()\n"
            "    except Exception: pass\n"
        )
        done = subprocess.run([sys.executable, "-P", "-c", code, site], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class TestModes:
    def test_no_grad_lasts_as_long_as_the_function(self, consumer):
        assert consumer.grad_mode_in_guard() is False
        assert torch.is_grad_enabled()

    @pytest.mark.parametrize("outside", [True, False])
    @pytest.mark.parametrize("inside", [True, False])
    def test_auto_grad_mode_begins_with_its_statement(self, consumer, outside, inside):
        with torch.set_grad_enabled(outside):
            assert consumer.auto_grad_mode(inside) == (outside, inside)
            assert torch.is_grad_enabled() is outside

    def test_inference_mode(self, consumer):
        assert consumer.inference_mode() is True
        assert not torch.is_inference_mode_enabled()
        with torch.inference_mode():
            assert consumer.inference_mode_off() is False
            assert torch.is_inference_mode_enabled()
        assert consumer.inference_mode_off() is False
        assert not torch.is_inference_mode_enabled()

    def test_an_exception_ends_the_mode(self, consumer):
        with pytest.raises(KeyError):
            consumer.guard_and_raise()
        assert torch.is_grad_enabled()


class TestWarnings:
    """torch warns when an out tensor with elements must be resized."""

    def test_a_torch_warning_becomes_a_python_warning(self, consumer, capfd):
        with pytest.warns(UserWarning, match=r"An output with one or more elements was resized.*Triggered internally"):
            consumer.warn_in_scope(torch.ones(3), torch.ones(2))
        assert capfd.readouterr().err == ""

    def test_a_filter_makes_it_an_exception(self, consumer, capfd):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="was resized"):
                consumer.warn_in_scope(torch.ones(3), torch.ones(2))
        assert capfd.readouterr().err == ""

    def test_what_is_not_emitted_goes_to_stderr(self, consumer, capfd):
        consumer.warn_in_scope(torch.ones(3), torch.ones(2), emit=False)
        assert "was resized" in capfd.readouterr().err

    def test_an_error_in_flight_wins(self, consumer, capfd):
        with pytest.raises(RuntimeError, match="self must be a matrix"):
            consumer.warn_then_fail(torch.ones(3), torch.ones(2))
        assert "was resized" in capfd.readouterr().err

    def test_scopes_that_end_out_of_order(self, consumer, capfd):
        """A generator has its scope from its creation. The oldest ends first, while the next one still points to it."""
        scopes = [consumer.warnings_in_steps() for _ in range(20)]
        while scopes:
            scopes.pop(0)
        with pytest.warns(UserWarning, match="was resized"):
            consumer.warn_in_scope(torch.ones(3), torch.ones(2))
        consumer.warn_in_scope(torch.ones(3), torch.ones(2), emit=False)
        assert "was resized" in capfd.readouterr().err

    def test_the_scope_ends_with_the_function(self, consumer, capfd):
        consumer.warn_in_scope(torch.ones(3), torch.ones(0))
        with pytest.warns(UserWarning, match="was resized"):
            torch.neg(torch.ones(3), out=torch.ones(2))


class TestThreads:
    def test_calls_from_many_threads(self, consumer):
        """Results, errors and modes of one thread do not reach other threads."""
        x, weight, wrong = torch.randn(4, 3), torch.randn(5, 3), torch.ones(2, 2)
        expected = torch.nn.functional.linear(x, weight)

        def work(_):
            for _ in range(20):
                assert torch.equal(consumer.linear(x, weight), expected)
                assert consumer.roundtrip(weight) is weight
                assert consumer.grad_mode_in_guard() is False
                with pytest.raises(RuntimeError, match="cannot be multiplied"):
                    consumer.mm(x, wrong)
                assert torch.is_grad_enabled()
            return True

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(16)))

    def test_an_object_dies_on_another_thread(self, consumer):
        """The last reference to a C++ tensor may be dropped on a thread that did not make the Python object."""
        gone = []
        for holder in (consumer.Accumulator, consumer.Native):
            x = torch.ones(3).as_subclass(Subclass)
            gone.append(weakref.ref(x))
            held = [holder(x)]
            del x
            thread = threading.Thread(target=held.clear)
            thread.start()
            thread.join()
        gc.collect()
        assert [reference() for reference in gone] == [None, None]


class TestLeaks:
    def test_a_million_roundtrips(self, consumer):
        x = torch.ones(3)
        process = psutil.Process()
        consumer.many_roundtrips(x, 10_000)
        references, before = sys.getrefcount(x), process.memory_info().rss
        consumer.many_roundtrips(x, 1_000_000)
        assert sys.getrefcount(x) == references
        assert process.memory_info().rss - before < 2**20  # as much as a leak of one byte per round

    @pytest.mark.unchecked(by="asan", reason="freed memory is kept back to catch its use, so the process grows")
    @pytest.mark.parametrize("holder", ["Accumulator", "Native"])
    def test_ten_thousand_objects_with_tensors(self, consumer, holder):
        process = psutil.Process()
        x = torch.ones(3)
        new = getattr(consumer, holder)

        def create(count):
            for _ in range(count):
                new(x)
                new(torch.ones(1000))

        create(1000)
        gc.collect()
        references, blocks, before = sys.getrefcount(x), sys.getallocatedblocks(), process.memory_info().rss
        create(10_000)
        gc.collect()
        assert sys.getrefcount(x) == references
        assert sys.getallocatedblocks() - blocks < 100
        assert process.memory_info().rss - before < 2**22  # 10,000 leaked tensors of this size are 40 MB

    def test_dealloc_drops_the_attribute(self, consumer):
        x = torch.ones(3)
        references = sys.getrefcount(x)
        accumulator = consumer.Accumulator(x)
        assert sys.getrefcount(x) == references + 1
        del accumulator
        assert sys.getrefcount(x) == references

    def test_a_cycle_through_a_typed_attribute_is_collected(self, consumer):
        x = torch.ones(3).as_subclass(Subclass)
        x.holder = consumer.Accumulator(x)
        gone = weakref.ref(x)
        del x
        gc.collect()
        assert gone() is None

    def test_failing_calls_do_not_leak(self, consumer):
        a, b = torch.ones(2, 3), torch.ones(4, 5)

        def fail():
            for _ in range(1000):
                with pytest.raises(RuntimeError):
                    consumer.mm(a, b)

        fail()
        gc.collect()
        references, blocks = sys.getrefcount(a), sys.getallocatedblocks()
        fail()
        gc.collect()
        assert sys.getrefcount(a) == references
        assert sys.getallocatedblocks() - blocks < 100


class TestExactMirror:
    def test_it_reads_what_the_light_one_reads(self, mirrors, tensor):
        assert mirrors.roundtrip(tensor) is tensor
        assert mirrors.same(tensor)
        assert mirrors.tensor_class() is torch.Tensor

    def test_checks(self, mirrors):
        assert mirrors.check(torch.ones(2)) == (True, True)
        assert mirrors.check(torch.ones(2).as_subclass(Subclass)) == (True, False)
        assert mirrors.check([]) == (False, False)


class TestPlainCxx:
    """The headers work in C++ without Cython."""

    def test_roundtrip_and_result(self, plain):
        x = torch.randn(3, 3)
        assert plain.roundtrip(x) is x
        assert torch.equal(plain.square(x), x @ x)

    def test_errors(self, plain):
        with pytest.raises(TypeError, match=r"must be a torch\.Tensor, got list"):
            plain.roundtrip([])
        x = torch.ones(2, 3)
        with pytest.raises(RuntimeError, match="2x3 and 2x3") as torchs:
            torch.mm(x, x)
        with pytest.raises(RuntimeError, match=f"^{re.escape(str(torchs.value))}$"):
            plain.square(x)

    @pytest.mark.parametrize(
        ("kind", "error", "message"),
        [
            (0, MemoryError, "^$"),
            (1, RuntimeError, "not a std::exception"),
            (3, KeyError, "set before"),
        ],
    )
    def test_what_is_thrown(self, plain, kind, error, message):
        with pytest.raises(error, match=message) as raised:
            plain.throw_kind(kind)
        assert raised.type is error

    def test_what_the_standard_library_throws(self, plain):
        with pytest.raises((RuntimeError, IndexError), match=r"^from the standard library$") as torchs:
            plain.throw_to_torch()
        with pytest.raises(torchs.type, match=r"^from the standard library$") as raised:
            plain.throw_kind(2)
        assert raised.type is torchs.type

    def test_a_state_without_a_text_has_none_when_copied(self, plain):
        assert plain.copy_a_reset_optional()

    def test_warning(self, plain):
        with pytest.warns(UserWarning, match="was resized"):
            plain.negate_into(torch.ones(3), torch.ones(2))


def test_import_without_torch_first(bare, site):
    """Each module finds torch's libraries by itself in a process that has not imported torch."""
    for module in ("consumer", "plain"):
        code = f"import {module}, torch; print({module}.roundtrip(torch.ones(2)).tolist())"
        assert bare(code, site) == "[1.0, 1.0]\n"
