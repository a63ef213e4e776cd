"""Functions that C++ instantiates for each dtype compute what torch computes, in torch's types."""

import re

import numpy as np
import pytest
import torch
from conftest import PROJECTS, import_from
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = [
    pytest.mark.native,
    pytest.mark.usefixtures("two_threads"),
]

INTEGRAL = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
COMPLEX = (torch.complex64, torch.complex128)
FLOAT8 = (torch.float8_e5m2, torch.float8_e5m2fnuz, torch.float8_e4m3fn, torch.float8_e4m3fnuz)
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


@pytest.fixture(scope="session")
def templates(site):
    return import_from(site, "templates")


def not_implemented(name, dtype):
    """The beginning of torch's message for a dtype without a kernel, with the operator's name."""
    with pytest.raises(NotImplementedError) as raised:
        torch.zeros(3, dtype=dtype).frac()
    return re.sub(r'^".*?"', f'"{name}"', str(raised.value))


class TestIterators:
    @pytest.mark.parametrize("two_dimensions", [False, True])
    @pytest.mark.parametrize("dtype", [*INTEGRAL, *FLOATING, *COMPLEX])
    def test_of_each_dtype(self, templates, dtype, two_dimensions):
        a, b = torch.randint(0, 9, (5, 7)).to(dtype), torch.randint(0, 9, (7, 5)).to(dtype).T
        got = templates.binary(a, b, two_dimensions)
        assert got.dtype == dtype
        assert torch.equal(got, a + a + b)

    def test_each_set_has_the_dtypes_of_torchs(self, templates):
        """`binary` takes all sets in one dimension, and a set and two dtypes in two dimensions."""
        for dtype in UNSIGNED:
            a = torch.arange(5).to(dtype)
            assert templates.binary(a, a).tolist() == [0, 3, 6, 9, 12]
            with pytest.raises(NotImplementedError, match="only for Byte, Char, Int, Long, Short, Double, Float, C"):
                templates.binary(a, a, True)
        for dtype in (*INTEGRAL, *UNSIGNED):
            assert templates.set_to(torch.zeros(4, 5, dtype=dtype)[:, ::2], 2, True).tolist() == [[2] * 3] * 4
        assert templates.set_to(torch.zeros(2, dtype=torch.bool), 1, False).tolist() == [True, True]
        with pytest.raises(NotImplementedError, match=r"only for Byte, Char, Int, Long, Short, Bool$"):
            templates.set_to(torch.zeros(2), 1, False)

    @pytest.mark.parametrize("dtype", [torch.bool, torch.float8_e5m2])
    def test_of_no_other_dtype(self, templates, dtype):
        a = torch.zeros(3, dtype=dtype)
        with pytest.raises(NotImplementedError) as raised:
            templates.binary(a, a)
        assert str(raised.value).startswith(not_implemented("combine", dtype))


REDUCTIONS = {
    "SUM": lambda x: x.sum(1, dtype=x.dtype),
    "MIN": lambda x: x.amin(1),
    "MAX": lambda x: x.amax(1),
    "PROD": lambda x: x.prod(1, dtype=x.dtype),
}


class TestConstants:
    @settings(deadline=None, max_examples=100)
    @given(
        st.sampled_from(sorted(REDUCTIONS)),
        st.sampled_from([*INTEGRAL, *FLOATING]),
        st.integers(0, 20),
        st.integers(1, 5),
        st.integers(0, 2**31),
    )
    def test_one_instance_for_each(self, templates, how, dtype, rows, columns, seed):
        x = torch.randint(0, 3, (rows, columns), generator=torch.Generator().manual_seed(seed)).to(dtype)
        got = templates.reduce_rows(x, templates.Reduction[how])
        assert got.dtype == dtype
        assert torch.equal(got, REDUCTIONS[how](x))

    @pytest.mark.parametrize("dtype", FLOATING)
    def test_infinities_are_the_bounds(self, templates, dtype):
        x = torch.tensor([[-torch.inf, -torch.inf], [torch.inf, torch.inf]], dtype=dtype)
        for how in (templates.Reduction.MIN, templates.Reduction.MAX):
            assert torch.equal(templates.reduce_rows(x, how), x[:, 0])
        assert torch.equal(templates.reduce_rows(x[:, :1].clone(), templates.Reduction.MEAN), x[:, 0])

    def test_a_sum_of_many_is_as_exact_as_acc_t(self, templates):
        for dtype, exact in ((torch.float32, torch.float64), (torch.float16, torch.float32)):
            x = torch.rand(2, 3000).to(dtype)
            expected = np.cumsum(x.to(exact).numpy(), axis=1)[:, -1]  # torch's cumsum adds float32 as float64
            assert torch.equal(templates.reduce_rows(x, templates.Reduction.SUM), torch.from_numpy(expected).to(dtype))

    @pytest.mark.parametrize("choice", [-1, 5, 2**40])
    def test_no_other_choice(self, templates, choice):
        expected = f'"reduce_rows": choice must be from 0 to {templates.Reduction.REDUCTIONS - 1}, got {choice}'
        with pytest.raises(ValueError, match=re.escape(expected)):
            templates.reduce_rows(torch.ones(1, 1), choice)
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool', only for"):
            templates.reduce_rows(torch.ones(1, 1, dtype=torch.bool), 0)


def divide(x, y):
    return (x / y).to(x.dtype) if x.dtype.is_floating_point else (x.double() / y.double()).to(x.dtype)


def literals(x, _):
    if x.dtype.itemsize < 4 and not x.dtype.is_floating_point:
        return literals_of(x.int()).to(x.dtype)  # C++ promotes small integers to int
    return literals_of(x)


def literals_of(x):
    return torch.where(x > 3, (x.abs().pow(2) + 7).remainder(5).floor_divide(2), x - 1)


ARITHMETIC = {
    "DIVIDE": divide,
    "FLOOR_DIVIDE": torch.floor_divide,
    "REMAINDER": torch.remainder,
    "POWER": torch.pow,
    "ABSOLUTE": lambda x, _: x.abs(),
    "IN_PLACE": lambda x, y: x.floor_divide(y).remainder(y),
    "LITERALS": literals,
}
"""Cython's operators, computed with torch's functions."""
EXPRESSIONS = re.findall(
    r"mixed_result = <double> \((.+)\)\n    elif", (PROJECTS / "kernels" / "templates.pyx").read_text()
)
"""The expressions of `mix`, by number."""
SIGNED = tuple(dtype for dtype in INTEGRAL if dtype.is_signed)


def numbers(draw, dtype, size):
    """Many are small, and none is 0: torch rejects integer division by 0, and Cython's division ends the process."""
    if dtype.is_floating_point:
        width = torch.finfo(dtype).bits
        large = st.floats(width=max(width, 16), allow_nan=False, allow_infinity=False)
        small = st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, 1e-3])
        values = st.one_of(large, small, small.map(lambda x: -x)).filter(lambda x: x)
    else:
        info = torch.iinfo(dtype)
        values = st.one_of(st.integers(info.min, info.max), st.integers(-9 if dtype.is_signed else 0, 9)).filter(bool)
    found = draw(st.lists(values, min_size=size, max_size=size))
    return torch.tensor(found, dtype=torch.float64 if dtype.is_floating_point else dtype).to(dtype)


class TestArithmetic:
    """`/`, `//`, `%`, `**` and abs() do the same as in Python and torch, for each dtype."""

    @settings(deadline=None, max_examples=300)
    @given(st.data())
    def test_operators(self, templates, data):
        how = data.draw(st.sampled_from(sorted(ARITHMETIC)))
        dtype = data.draw(st.sampled_from([*INTEGRAL, *FLOATING]))
        x, y = (numbers(data.draw, dtype, 7) for _ in "xy")
        if not dtype.is_floating_point:
            if how == "POWER":
                y = y % 12
            elif how == "LITERALS":
                x = x.fmod(1000) if dtype.itemsize > 2 else x  # its square and its sum fit
            elif dtype.is_signed:  # undefined in C++, and in torch
                x[(y == -1) & (x == torch.iinfo(dtype).min)] = 1
        y[y == 0] = 3  # numbers too small for the dtype
        got, expected = templates.operate(x, y, templates.Operator[how]), ARITHMETIC[how](x, y)
        assert got.dtype == dtype
        if how == "POWER" and dtype.is_floating_point:
            torch.testing.assert_close(got, expected, equal_nan=True)
        else:
            torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)

    @pytest.mark.parametrize("dtype", SIGNED)
    def test_the_lowest_integer(self, templates, dtype):
        lowest = torch.iinfo(dtype).min
        x, minus_1 = torch.tensor([lowest, lowest + 1], dtype=dtype), torch.tensor([-1, -1], dtype=dtype)
        for how, expected in (
            ("FLOOR_DIVIDE", [lowest, -(lowest + 1)]),
            ("REMAINDER", [0, 0]),
            ("ABSOLUTE", [lowest, -(lowest + 1)]),
        ):
            assert templates.operate(x, minus_1, templates.Operator[how]).tolist() == expected

    @pytest.mark.parametrize("dtype", SIGNED)
    def test_an_integer_to_a_negative_power(self, templates, dtype):
        x, y = torch.meshgrid(torch.arange(-3, 4, dtype=dtype), torch.arange(-4, 0, dtype=dtype), indexing="ij")
        x, y = x[x != 0], y[x != 0]
        assert torch.equal(templates.operate(x, y, templates.Operator.POWER), torch.pow(x, y))

    @pytest.mark.parametrize("dtype", UNSIGNED)
    def test_unsigned_integers(self, templates, dtype):
        x, y = torch.tensor([7, torch.iinfo(dtype).max], dtype=dtype), torch.tensor([4, 10], dtype=dtype)
        for how, of_numbers in (("FLOOR_DIVIDE", int.__floordiv__), ("REMAINDER", int.__mod__), ("ABSOLUTE", max)):
            expected = [of_numbers(*pair) for pair in zip(x.tolist(), y.tolist(), strict=True)]
            if how == "ABSOLUTE":
                expected = x.tolist()
            assert templates.operate(x, y, templates.Operator[how]).tolist() == expected

    @pytest.mark.parametrize("dtype", [*INTEGRAL, *FLOATING])
    @settings(deadline=None, max_examples=200)
    @given(st.sampled_from(EXPRESSIONS), st.data())
    def test_mixed_types(self, templates, dtype, case, data):
        """No operand and no part of an expression is rounded to a type that it does not have."""
        small = st.integers(-7 if dtype.is_signed else 1, 7).filter(bool)
        a, b, n, m = data.draw(small), data.draw(small), data.draw(st.integers(1, 256)), data.draw(st.integers(0, 3))
        got = templates.mix(EXPRESSIONS.index(case), torch.tensor([a, b], dtype=dtype), n, m)
        exact = eval(case, {"a": a, "b": b, "o": a, "t": b, "n": n, "m": m})
        assert got == pytest.approx(exact, rel=8 * torch.finfo(dtype).eps if dtype.is_floating_point else 1e-15)

    @pytest.mark.parametrize("dtype", INTEGRAL)
    def test_operators_in_place(self, templates, dtype):
        for a, b, n, m in ((7, 2, 256, 3), (30, 3, 5, 2), (5, 7, 300, 0)):
            assert templates.mix(len(EXPRESSIONS), torch.tensor([a, b], dtype=dtype), n, m) == (a // b) ** m + b % n

    @pytest.mark.parametrize("dtype", COMPLEX)
    def test_complex_numbers(self, templates, dtype):
        x = torch.tensor([3 - 4j, 0.5 + 2j], dtype=dtype)
        torch.testing.assert_close(templates.complex_numbers(x.clone()), (7 + x[0] / x[1]) ** 2 * x[0].abs() - 1)

    @pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
    @pytest.mark.parametrize("dtype", [*INTEGRAL, *FLOATING, *COMPLEX, torch.complex32, *FLOAT8])
    def test_sums_in_acc_t(self, templates, dtype):
        """Its elements have a smaller type, and those of C++'s complex numbers and float8 have no common operators."""
        x = torch.tensor([3, 1, 2] if dtype in INTEGRAL else [3, -1, 2])
        x = x + torch.tensor([1j, -2j, 0]) if dtype.is_complex else x
        wide = x.to(torch.complex128 if dtype.is_complex else torch.float64)
        expected = torch.stack([wide.sum(), wide.prod(), -wide.sum(), wide.new_zeros(()), wide.sum() / wide[1]])
        got = templates.accumulate(torch.cat([x, x.new_zeros(5)]).to(dtype))[3:].to(wide.dtype)
        if dtype is torch.uint8:
            expected[2] += 256
        torch.testing.assert_close(got, expected.to(dtype).to(wide.dtype))

    @pytest.mark.parametrize("dtype", COMPLEX)
    def test_real_factors_of_another_type(self, templates, dtype):
        x = torch.tensor([3 - 4j], dtype=dtype)
        templates.scale(x)
        assert x.item() == (3 - 4j) * 1.5 * 0.5 + 2


class TestTypes:
    @pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
    @pytest.mark.parametrize("dtype", [*INTEGRAL, *FLOATING, *COMPLEX, torch.bool, torch.complex32, *FLOAT8])
    def test_those_that_torch_accumulates_in(self, templates, dtype):
        assert templates.accumulates_as_torch(torch.zeros(1, dtype=dtype))

    @pytest.mark.parametrize("dtype", [*INTEGRAL, *FLOATING, *FLOAT8, torch.float8_e8m0fnu])
    def test_limits_are_those_of_torch(self, templates, dtype):
        found = templates.limits(torch.zeros(1, dtype=dtype))
        if dtype.is_floating_point:
            info = torch.finfo(dtype)
            infinite = dtype in (*FLOATING, torch.float8_e5m2)
            assert found["upper_bound"] == (torch.inf if infinite else info.max)
            assert found["lower_bound"] == (-torch.inf if infinite else info.min)
            assert (found["lowest"], found["max"], found["min"]) == (info.min, info.max, info.tiny)
            assert found["epsilon"] == info.eps
        else:
            info = torch.iinfo(dtype)
            assert (found["lowest"], found["min"], found["max"]) == (info.min, info.min, float(info.max))
            assert (found["lower_bound"], found["upper_bound"]) == (found["lowest"], found["max"])


def test_an_error_of_python_leaves_a_template(templates):
    with pytest.raises(KeyError, match=r"half is 0\.5"):
        templates.fail(torch.zeros(1))
