"""Operators registered from Cython take and return the types of their schemas, and raise their kernels' errors."""

import re
import signal
import sys
import textwrap
import threading
import traceback

import pytest
import torch
from conftest import compiles
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx.operator_schemas import get_signature_for_torch_op

import interop

pytestmark = pytest.mark.native

OPS = torch.ops.interop_test


@pytest.fixture(autouse=True)
def _loaded(operators, failing):
    """The operators exist once their modules are imported."""


def test_tags():
    tags = {torch.Tag.pt2_compliant_tag, torch.Tag.pointwise, torch.Tag.needs_fixed_stride_order}
    assert tags <= set(OPS.exponential.default.tags)
    assert not tags & set(OPS.numbers.default.tags)


class TestArguments:
    @given(
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.booleans(),
        st.booleans(),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False),
    )
    @settings(deadline=None)
    def test_numbers(self, i, f, b, c, oi, of):
        given_back = OPS.numbers(i, f, b, c, oi, of)
        assert given_back == (i, f, b, c, -1 if oi is None else oi, -1.0 if of is None else of)
        assert [type(one) for one in given_back] == [int, float, bool, bool, int, float]

    def test_a_narrow_number(self):
        assert OPS.narrow(-(2**31), 0.5) == (-(2**31), 0.5)
        with pytest.raises(ValueError, match="the number 2147483648 does not fit into the kernel's C type"):
            OPS.narrow(2**31, 0.5)

    @pytest.mark.parametrize("a", [3, 2.5, True, 1 + 2j])
    def test_scalars(self, a):
        given_back = OPS.scalars(a, 7)
        assert given_back == (a, 7)
        assert type(given_back[0]) is type(a)

    def test_ints(self):
        assert OPS.ints([1, 2], [3], [4, 5]) == [1, 2, 3, 4, 5]
        assert OPS.ints([], []) == []
        assert OPS.ints([1], [], None) == [1]

    def test_tensors(self):
        a, b, c = torch.ones(1), torch.ones(2), torch.ones(3)
        for result, expected in (
            (OPS.tensors([a, b], c, a), [a, b, c, a]),
            (OPS.tensors([]), []),
            (OPS.tensors([a], other=b), [a, b]),
        ):
            assert len(result) == len(expected)
            assert all(x is y for x, y in zip(result, expected, strict=True))

    @given(st.text(), st.text())
    @settings(deadline=None)
    def test_text(self, a, b):
        if "\0" not in a + b:
            assert OPS.text(a, b) == a + b

    @pytest.mark.parametrize("s", [None, 2.5])
    @pytest.mark.parametrize("y", [None, torch.full((2, 3), 3.0)])
    def test_references(self, s, y):
        """A kernel may pass elements of a vector, the value of an optional, and its parameters to operators."""
        xs, x = [torch.randn(2, 3), torch.randn(2, 3)], torch.randn(2, 3)
        total = 4 * (xs[0] + xs[1]) + (s or 1.0) * xs[0]
        total = total * (s or 1.0) * xs[0] - (s or 0.0)
        total = total * (1.0 if y is None else y)
        expected = torch.cat((total, x, xs[0], xs[0]), 0).sum(1, True).expand(8, 5)
        torch.testing.assert_close(OPS.folded(xs, x, s, y, [0, 1, 5]), expected)

    def test_types(self):
        made = OPS.types(torch.float64, None, torch.device("cpu"))
        assert (made.dtype, made.device.type) == (torch.float64, "cpu")
        assert OPS.types(torch.float64, torch.int8, torch.device("meta")).dtype == torch.int8
        assert OPS.types(torch.float64, None, torch.device("meta")).device.type == "meta"

    def test_types_that_may_be_left_out(self, operators):
        assert torch.equal(OPS.maybe_types(), torch.tensor(1.0))
        assert torch.equal(OPS.maybe_types("cpu", [0.5, 2.0], [2, 3]), torch.full((2, 3), 3.5))
        assert torch.equal(OPS.maybe_types(None, [], []), torch.tensor(1.0))
        assert OPS.maybe_types(torch.device("meta"), None, [4]).is_meta
        assert OPS.maybe_types(None, None, [4], torch.device("meta")).is_meta
        assert OPS.maybe_types(torch.device("meta"), other="meta").is_meta
        assert operators.handed_on(True).is_meta
        assert not operators.handed_on(False).is_meta

    def test_results(self):
        x = torch.randn(4, 3)
        for mine, theirs in zip(OPS.pair(x), torch.max(x, 0), strict=True):
            assert torch.equal(mine, theirs)
        assert OPS.total(x) == torch.sum(x).item()

    def test_a_parameter_by_value_is_the_kernels_own(self):
        x = torch.zeros(2)
        assert torch.equal(OPS.by_value(x), torch.ones(2))
        assert torch.equal(x, torch.zeros(2))

    @pytest.mark.parametrize("way", ["star", "plus", "noexcept", "implicit", "with_gil"])
    def test_every_way_to_declare_a_kernel(self, way):
        x = torch.randn(3)
        assert torch.equal(getattr(OPS, f"twice_{way}")(x), x * 2)


class TestChanges:
    def test_a_change_in_place(self):
        x = torch.zeros(2)
        version = x._version
        assert OPS.add_one_(x) is None
        assert torch.equal(x, torch.ones(2))
        assert x._version == version + 1

    def test_autograd_sees_it(self):
        x = torch.ones(2, requires_grad=True)
        y = x * 1
        z = y * y  # saves y
        OPS.add_one_(y.detach())
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()

    def test_a_parameter_that_is_replaced_is_replaced_for_the_kernel_alone(self):
        x = torch.full((2,), 5.0)
        OPS.replace_(x)
        assert torch.equal(x, torch.zeros(2))

    def test_a_gradient_that_would_be_wrong(self):
        leaf = torch.ones(2, requires_grad=True)
        for x in (leaf, leaf * 1):
            with pytest.raises(
                RuntimeError, match="changes its argument 'x', which requires grad, and has no gradient"
            ):
                OPS.add_one_(x)
            with torch.no_grad():
                OPS.add_one_(x)
            with torch._C._AutoDispatchBelowAutograd():  # as an Autograd kernel that has the gradient calls it
                OPS.add_one_(x)
            assert x.tolist() == [3, 3]

    def test_a_gradient_that_would_be_lost(self):
        """A change that depends on a tensor requiring grad raises: the changed tensor would seem to be a constant."""
        y = torch.full((3,), 2.0, requires_grad=True)
        for call in (lambda out: OPS.scaled.out(y, 2.0, out=out), lambda out: OPS.add_all_(out, [y.detach(), y])):
            out = torch.zeros(3)
            with pytest.raises(
                RuntimeError,
                match=r"changes its argument '(out|x)', and has no gradient for '(x|ys)', which requires grad; "
                r"call it under torch.no_grad\(\), or with (x|ys).detach\(\)",
            ):
                call(out)
            assert not out.any()
            with torch.no_grad():
                call(out)
            assert torch.equal(out, torch.full((3,), 4.0))

    @pytest.mark.unchecked(by="leaks", reason="torch.library keeps something of each kernel that it registers")
    def test_a_gradient_that_would_be_lost_in_a_list_with_gaps(self):
        library = torch.library.Library("interop_test", "FRAGMENT")
        library.impl("add_gaps_", lambda x, ys: [x.add_(y) for y in ys if y is not None] and None, "CPU")
        x, y = torch.zeros(3), torch.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError, match="changes its argument 'x', and has no gradient for 'ys'"):
            OPS.add_gaps_(x, [None, y])
        OPS.add_gaps_(x, [None, y.detach(), y.detach()])
        assert x.tolist() == [2, 2, 2]

    def test_inference_mode(self):
        with torch.inference_mode():
            x = torch.zeros(2)
            OPS.add_one_(x)
        assert x.sum() == 2

    def test_out(self):
        x, out = torch.randn(3), torch.empty(3)
        result = OPS.scaled.out(x, 2.0, out=out)
        assert torch.equal(out, x * 2)
        assert result.data_ptr() == out.data_ptr()


def torchs_message(function, *arguments):
    """The message of torch's `function` for arguments that it rejects. It differs between releases."""
    with pytest.raises(RuntimeError) as raised:
        function(*arguments)
    return re.compile(f"{re.escape(str(raised.value))}$")


ERRORS = {
    -1: (RuntimeError, torchs_message(torch.mm, torch.ones(3, 4), torch.ones(3, 4))),
    0: (KeyError, re.compile("'a key'")),
    2: (KeyboardInterrupt, re.compile("$")),
    3: (KeyboardInterrupt, re.compile("$")),
    4: (MemoryError, re.compile("no memory$")),
    5: (torch.OutOfMemoryError, re.compile("no memory on the device$")),
    6: (StopIteration, re.compile("5$")),
    7: (SystemExit, re.compile("3$")),
}
WAYS = ["star", "plus", "noexcept", "traced", "void", "number"]


@pytest.fixture
def interrupts():
    """Makes Ctrl-C raise KeyboardInterrupt, also if a shell has started the tests with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
class TestErrors:
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("what", ERRORS)
    def test_type_and_message(self, way, what, capfd):
        kind, message = ERRORS[what]
        with pytest.raises(kind) as raised:
            getattr(OPS, f"fail_{way}")(torch.ones(3, 4), what)
        assert raised.type is kind
        assert message.match(str(raised.value))
        assert capfd.readouterr() == ("", "")  # no error is ignored, and nothing is printed

    @pytest.mark.parametrize("way", WAYS)
    def test_a_class_of_ones_own(self, way, failing):
        with pytest.raises(failing.Custom) as raised:
            getattr(OPS, f"fail_{way}")(torch.ones(3, 4), 1)
        assert (raised.value.args, raised.value.b) == (("custom", 7), 7)

    @pytest.mark.parametrize("way", ["star", "plus", "void", "number"])
    def test_traceback(self, way):
        with pytest.raises(KeyError) as raised:
            getattr(OPS, f"fail_{way}")(torch.ones(3, 4), 0)
        frames = traceback.extract_tb(raised.value.__traceback__)
        assert [frame.name for frame in frames][-2:] == [f"failing.fail_{way}", "failing.raise_it"]
        assert frames[-1].filename.endswith("failing.pyx")

    def test_no_error_no_exception(self):
        x = torch.ones(3, 4)
        assert torch.equal(OPS.fail_star(x, 99), x)
        assert OPS.fail_number(x, 99) == -1  # the value of `except? -1`, without an error

    @pytest.mark.parametrize("fails", [False, True])
    def test_an_error_in_flight_survives(self, failing, fails):
        """A kernel that is called with an error set neither loses that error nor mistakes it for its own."""
        with pytest.raises(LookupError, match="the first") as raised:
            failing.with_an_error_set(torch.ones(3, 4), 0 if fails else 99)
        assert raised.type is LookupError

    def test_a_destructor_is_nobodys_kernel(self, monkeypatch):
        """An error in a destructor is unraisable, as usual, and the kernel goes on."""
        ignored = []
        with monkeypatch.context() as patch:  # undone at once, because the check for leaks repeats tests
            patch.setattr(sys, "unraisablehook", lambda error: ignored.append(error.exc_value))
            assert torch.equal(OPS.fail_star(torch.ones(3, 4), 8), torch.ones(3, 4))
        assert [str(error) for error in ignored] == ["in a destructor"]

    def test_a_thread_of_its_own(self):
        caught = []

        def work():
            try:
                OPS.fail_noexcept(torch.ones(3, 4), 0)
            except KeyError as error:
                caught.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(caught) == 8

    def test_a_signal(self):
        """Ctrl-C raises KeyboardInterrupt when the kernel checks for signals."""
        with pytest.raises(KeyboardInterrupt):
            OPS.fail_star(torch.ones(3, 4), 3)

    def test_references(self):
        x = torch.ones(3, 4)
        before = sys.getrefcount(x)
        for way in ("star", "plus", "noexcept"):
            for _ in range(5):
                with pytest.raises(KeyError):
                    getattr(OPS, f"fail_{way}")(x, 0)
        assert sys.getrefcount(x) == before


REFUSED = {
    "defined twice": (
        RuntimeError,
        r'define\("interop_test::given"\): .*defined already by the module failing, as .*\)',
    ),
    "defined by torch": (RuntimeError, r'define\("aten::mm"\): .*defined already, as aten::mm\('),
    "schema": (ValueError, r"cannot read the schema '\(Tensor a -> Tensor'.*expected \)"),
    "schema type": (ValueError, r"cannot read the schema '\(Tensr a\) -> Tensor'"),
    "schema name": (ValueError, r"cannot read the schema"),
    "name": (ValueError, "has the form 'namespace::name'.*, got 'new'"),
    "unknown operator": (RuntimeError, "there is no operator interop_test::unknown; define it first"),
    "unknown key": (ValueError, "there is no dispatch key 'Cpu'; give one such as CPU"),
    "kernel twice": (RuntimeError, "the module failing has registered a kernel of interop_test::given for CPU already"),
    "number of arguments": (
        TypeError,
        "the schema has 1 argument, and the kernel 3. The schema is interop_test::given",
    ),
    "type of an argument": (
        TypeError,
        "argument 3 's' is float in the schema, and int in the kernel; declare it double",
    ),
    "change that is not in the schema": (
        TypeError,
        r"argument 1 'x' is not changed in the schema; declare it const at.Tensor&, or write Tensor\(a!\) x in the",
    ),
    "result": (TypeError, "the schema has 1 result, and the kernel 0"),
    "int and bint": (TypeError, "argument 2 'flag' is bool .*; declare it bint, and a whole number beside it int64_t"),
    "gradients": (TypeError, "the operator takes 1 arguments, but backward returns 2 gradients"),
    "gradients of results": (TypeError, "the operator returns 1 tensor, but backward takes the gradients of 2 outputs"),
    "type that no kernel has": (
        TypeError,
        "argument 2 'c' is complex in the schema, and float in the kernel; declare it const at.Scalar&, and write",
    ),
    "setup_context": (TypeError, "setup_context takes .* argument 2 is Tensor in the schema, and float in the kernel"),
    "gradient of a change": (RuntimeError, "changes or returns an argument"),
    "gradient of an implicit kernel": (RuntimeError, "has a kernel for CompositeImplicitAutograd"),
    "implicit kernel of a gradient": (RuntimeError, "has a gradient, and this kernel would hide it"),
    "gradient of an optional list": (TypeError, r"there is no gradient for a result of type Tensor\?\[\]"),
    "autocast to int": (ValueError, "autocast casts to a floating-point dtype, got Int"),
    "autocast device": (ValueError, "there is no dispatch key 'AutocastAutograd'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_registration_is_refused(failing, what):
    kind, message = REFUSED[what]
    with pytest.raises(kind, match=message):
        failing.refused(what)


def test_a_device_without_a_kernel():
    """The dispatcher's own message names the operator and the backend."""
    with pytest.raises(
        NotImplementedError, match="Could not run 'interop_test::given' with arguments from the 'Sparse"
    ):
        OPS.given(torch.eye(2).to_sparse())


class TestOperator:
    def test_call(self, operators):
        a, b = torch.randn(2, 3), torch.randn(3, 4)
        assert torch.equal(operators.call_scaled_mm(a, b, 2.0), (a @ b) * 2)
        x = torch.randn(3, 2)
        assert all(map(torch.equal, operators.call_pair(x), torch.max(x, 0)))
        assert operators.call_defaults() == "wow!"
        assert all(map(torch.equal, OPS.made_pair(x), torch.max(x, 0)))
        assert OPS.made_three(x) == (x.size(0), x.dim(), 0.5)
        doubled, undefined = operators.call_half_undefined(x)
        assert torch.equal(doubled, x * 2)
        assert undefined is None

    def test_a_bint_and_a_whole_number(self, operators):
        x = torch.ones(2)
        for flag in (True, False):
            doubled, other = operators.call_flagged(x, flag)
            assert torch.equal(doubled, x * 2)
            assert other is not flag

    def test_it_is_differentiable(self, operators):
        a, b = torch.randn(2, 3, requires_grad=True), torch.randn(3, 4)
        operators.call_scaled_mm(a, b, 2.0).sum().backward()
        assert torch.allclose(a.grad, 2 * torch.ones(2, 4) @ b.T)

    @pytest.mark.parametrize(
        ("how", "kind", "message"),
        [
            ("missing", TypeError, "interop_test::scaled_mm: argument 2 'b' is missing"),
            ("too many", TypeError, "interop_test::scaled_mm takes 3 arguments, got 4"),
            ("type", TypeError, "interop_test::scaled_mm: argument 3 's' is float, got Tensor"),
            ("undefined", TypeError, "interop_test::scaled_mm: argument 1 'a' is an undefined tensor"),
            ("results", TypeError, "interop_test::pair returns 2 values"),
            ("result type", TypeError, r"interop_test::scaled_mm returns Tensor, but Operator\[...\] says float"),
            ("name", RuntimeError, "there is no operator interop_test::nothing"),
            (
                "overload",
                RuntimeError,
                "interop_test::scaled has no overload ''; choose from: interop_test::scaled.out",
            ),
        ],
    )
    def test_a_wrong_call(self, operators, how, kind, message):
        with pytest.raises(kind, match=message):
            operators.call_wrongly(torch.ones(2, 2), how)


@compiles("asan", "ubsan", "tsan", "leaks", "perturb")
@pytest.mark.long
@pytest.mark.usefixtures("jit_cache")
@pytest.mark.extended
def test_a_module_that_is_loaded_anew_replaces_what_it_registered():
    """As in a notebook, a module is loaded again from a changed source, with another schema and one operator less."""
    source = textwrap.dedent("""\
        cimport ATen as at
        from libc.stdint cimport int64_t
        from torch.library cimport VmapInfo, define, impl, register_vmap
        cdef at.Tensor kernel(const at.Tensor& x{parameter}) except * nogil: return at.add(x, {number})
        cdef at.Tensor rule(VmapInfo& info, const at.Tensor& x{parameter}) except * nogil: return kernel(x{given})
        define("interop_reload::f", "(Tensor x{argument}) -> Tensor")
        impl("interop_reload::f", "CPU", kernel)
        register_vmap("interop_reload::f", rule)
        {more}
        """)
    ops, x = torch.ops.interop_reload, torch.zeros(1)

    def parameters():
        """The parameters according to torch.fx, which caches the signature of an operator by name."""
        (signature,) = get_signature_for_torch_op(ops.f.default)
        return list(signature.parameters)

    more = 'define("interop_reload::old", "() -> ()")'
    interop.load_inline(source.format(parameter="", argument="", given="", number=1, more=more), name="again")
    assert (ops.f(x).item(), hasattr(ops, "old")) == (1, True)
    assert torch.func.vmap(ops.f)(x).item() == 1
    assert parameters() == ["x"]
    packet, overload, old = ops.f, ops.f.default, ops.old
    hashes = hash(packet), hash(overload)
    changed = source.format(parameter=", int64_t n", argument=", int n", given=", n", number="n", more="")
    interop.load_inline(changed, name="again")
    assert parameters() == ["x", "n"]
    assert (ops.f(x, 5).item(), hasattr(ops, "old")) == (5, False)
    assert torch.func.vmap(ops.f, in_dims=(0, None))(x, 5).item() == 5
    assert str(ops.f.default._schema) == "interop_reload::f(Tensor x, int n) -> Tensor"
    # What was taken from torch.ops before would call freed memory.
    assert (packet(x, 5).item(), overload(x, 5).item(), packet.default is overload) == (5, 5, True)
    assert overload.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), x, 5).item() == 5
    assert (hash(packet), hash(overload)) == hashes
    with pytest.raises(AttributeError, match="old"):
        old()


@compiles("asan", "ubsan", "tsan", "leaks", "perturb")
@pytest.mark.long
@pytest.mark.usefixtures("jit_cache")
@pytest.mark.extended
def test_what_was_taken_from_a_module_that_was_loaded_anew_twice():
    """An overload that is first looked up after the second load, in the packet of the first one."""
    source = "cimport ATen as at\nfrom torch.library cimport define, impl\n"
    source += "cdef at.Tensor kernel(const at.Tensor& x) except * nogil: return at.add(x, {number})\n"
    source += 'define("interop_twice::{name}", "(Tensor x) -> Tensor")\nimpl("interop_twice::{name}", "CPU", kernel)\n'
    x, taken = torch.zeros(1), []
    for number in (1, 2):
        interop.load_inline(source.format(number=number, name="name"), name="twice")  # torch.ops has such an attribute
        interop.load_inline(source.format(number=number, name="f"), name="twice")
        taken.append(torch.ops.interop_twice.f)
        if number == 2:
            taken.append(taken[0].default)
        assert [one(x).item() for one in taken] == [number] * len(taken)
    interop.load_inline(source.format(number=3, name="other"), name="twice")
    for one in taken:
        with pytest.raises(AttributeError, match="'f'"):
            one(x)
    assert torch.ops.interop_twice.other(x).item() == 3


@compiles("asan", "ubsan", "tsan", "leaks", "perturb")
@pytest.mark.long
@pytest.mark.usefixtures("jit_cache")
@pytest.mark.parametrize(
    ("what", "function"),
    [
        (
            "register_vmap",
            "cdef at.Tensor rule(VmapInfo& info, const at.Tensor& x, int64_t n) except * nogil: return x\n"
            'register_vmap("{name}", rule)',
        ),
        (
            "register_autograd",
            "cdef (at.Tensor, at.Tensor) back(Context& ctx, const at.Tensor& grad) except * nogil:\n"
            "    return grad, at.Tensor()\n"
            "cdef void setup(Context& ctx, const at.Tensor& x, int64_t n, const at.Tensor& y) except * nogil: pass\n"
            'register_autograd("{name}", back, setup)',
        ),
        (
            "impl",
            "cdef at.Tensor meta(const at.Tensor& x, int64_t n) except * nogil: return at.empty_like(x)\n"
            'impl("{name}", "Meta", meta)',
        ),
    ],
)
@pytest.mark.extended
def test_an_operator_that_is_defined_anew_with_another_schema(what, function):
    """What another module registered for the old schema would read arguments that do not exist, so torch raises."""
    name = f"interop_anew::{what}"
    define = f'from torch.library cimport define\ndefine("{name}", "(Tensor x{{more}}) -> Tensor")\n'
    rest = (
        "cimport ATen as at\nfrom libc.stdint cimport int64_t\nfrom torch.autograd cimport Context\n"
        "from torch.library cimport VmapInfo, impl, register_autograd, register_vmap\n"
    )
    interop.load_inline(define.format(more=", SymInt n"), name=f"defines_{what}")
    interop.load_inline(rest + function.format(name=name), name=f"uses_{what}")
    with pytest.raises(RuntimeError, match=r"The number of arguments is different. 1 vs 2"):
        interop.load_inline(define.format(more=""), name=f"defines_{what}")
