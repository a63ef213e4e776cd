"""The results of CUDA kernels, compiled by g++ and run on the host, thread by thread."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.native

FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGRAL = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
# For several roundings in the type of the computation, and one in the type of the result.
TOLERANCE = {torch.float64: 1e-13, torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


@st.composite
def layouts(draw, max_dims=5):
    """A function that lays a tensor of some sizes out in memory: transposed, with gaps, offset, expanded."""
    sizes = draw(st.lists(st.integers(0, 7), max_size=max_dims))
    count = draw(st.integers(1, 3))

    def operand():
        order = draw(st.permutations(range(len(sizes))))
        gap = draw(st.integers(1, 2))
        offset = draw(st.integers(0, 3))
        repeated = [draw(st.booleans()) and draw(st.booleans()) for _ in sizes]

        def make(dtype):
            inner = [1 if repeat else size for size, repeat in zip(sizes, repeated, strict=True)]
            stored = [inner[i] for i in order]
            total = gap * max(1, torch.Size(stored).numel()) + offset
            if dtype.is_floating_point:
                memory = torch.randn(total, dtype=torch.float64).to(dtype)
            else:
                memory = torch.randint(0, 11, (total,), dtype=dtype)
            flat = memory[offset:].as_strided((torch.Size(stored).numel(),), (gap,))
            strides, step = [0] * len(sizes), gap
            for i in reversed(order):
                strides[i], step = step, step * inner[i]
            return flat.as_strided(inner, strides, offset).expand(sizes)

        return make

    return [operand() for _ in range(count)]


def close(result, expected, dtype):
    assert result.dtype == dtype
    assert result.shape == expected.shape
    torch.testing.assert_close(
        result.double(), expected.double(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], check_stride=False
    )


class TestElementwise:
    @settings(deadline=None)
    @given(layouts(), st.sampled_from(FLOATING), st.booleans())
    def test_any_layout(self, emulated, operands, dtype, wide):
        tensors = [make(dtype) for make in operands]
        x = tensors[0]
        close(emulated.swish(x, 1.5, wide), x.double() * torch.sigmoid(1.5 * x.double()), dtype)
        if len(tensors) > 1:
            y = tensors[1]
            close(emulated.hypotenuse(x, y, wide), torch.hypot(x.double(), y.double()), dtype)
        if len(tensors) > 2:
            y, z = tensors[1:]
            close(emulated.multiply_add(x, y, z, wide), x.double() * y.double() + z.double(), dtype)

    @settings(deadline=None)
    @given(layouts(), st.sampled_from(INTEGRAL), st.booleans())
    def test_integers(self, emulated, operands, dtype, wide):
        x, y, z = (operands * 3)[:3]
        x, y, z = x(dtype), y(dtype), z(dtype)
        result = emulated.multiply_add(x, y, z, wide)
        assert result.dtype == dtype
        assert torch.equal(result, x * y + z)

    @pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 255, 256, 1023, 1024, 1025, 4099])
    @pytest.mark.parametrize("dtype", FLOATING)
    def test_vectors_and_what_is_left(self, emulated, count, dtype):
        x, y = torch.randn(count).to(dtype), torch.randn(count).to(dtype)
        close(emulated.hypotenuse(x, y), torch.hypot(x.double(), y.double()), dtype)

    @pytest.mark.parametrize("wide", [False, True])
    def test_nothing_that_cannot_be_joined(self, emulated, wide):
        assert emulated.hypotenuse(torch.empty(0, 1, 3), torch.empty(4, 1), wide).shape == (0, 4, 3)
        assert emulated.swish(torch.empty(3, 0, 2).permute(2, 0, 1), 1.0, wide).shape == (2, 3, 0)

    @pytest.mark.parametrize("offset", range(5))
    def test_memory_that_takes_no_vectors(self, emulated, offset):
        x, y = torch.randn(1003)[offset:], torch.randn(1000)[: 1000 - offset]
        x = x[: len(y)]
        close(emulated.hypotenuse(x, y), torch.hypot(x.double(), y.double()), torch.float32)

    def test_nothing_beside_the_output_is_written(self, emulated):
        for size in (1, 4, 255, 257, 1030):
            memory = torch.full((size + 32,), 7.0)
            out = memory[16 : 16 + size]
            emulated.hypotenuse_into(out, torch.full((size,), 3.0), torch.full((size,), 4.0))
            assert torch.equal(out, torch.full((size,), 5.0))
            assert torch.equal(memory[:16], torch.full((16,), 7.0))
            assert torch.equal(memory[16 + size :], torch.full((16,), 7.0))

    def test_broadcasting_and_promotion(self, emulated):
        x, y = torch.randn(4, 1, 3, dtype=torch.float16), torch.randn(5, 1, dtype=torch.float32)
        result = emulated.hypotenuse(x, y)
        close(result, torch.hypot(x.double(), y.double()), torch.float32)
        assert emulated.hypotenuse(torch.tensor([3, 5]), torch.tensor([4, 12])).tolist() == [5.0, 13.0]
        assert (
            emulated.multiply_add(torch.tensor([3]), torch.tensor(4, dtype=torch.int16), x.int()).dtype == torch.int64
        )
        # As in torch, a tensor without dimensions promotes by the category of its dtype, not by its size.
        assert emulated.hypotenuse(x, torch.tensor(2.0, dtype=torch.float64)).dtype == torch.float16

    def test_conjugation_and_negation_that_are_pending(self, emulated):
        x = torch.tensor([3 + 4j]).conj().imag  # its negation is pending
        assert x.is_neg()
        assert emulated.hypotenuse(x, torch.tensor([3.0])).tolist() == [5.0]

    def test_into(self, emulated):
        x, y = torch.full((2, 3), 3.0), torch.full((3,), 4.0)
        out = torch.zeros(3, 2).t()
        version = out._version
        assert emulated.hypotenuse_into(out, x, y) is out
        assert out._version > version
        assert torch.equal(out, torch.full((2, 3), 5.0))

    def test_many_dimensions_are_joined(self, emulated):
        x = torch.randn([2] * 18)
        close(emulated.swish(x, 1.0), x.double() * torch.sigmoid(x.double()), torch.float32)

    def test_too_many_dimensions(self, emulated):
        with pytest.raises(ValueError, match=r"up to 16 dimensions that cannot be joined, got 17.*contiguous"):
            emulated.hypotenuse(_zigzag(17), _zigzag(17, reverse=True))


def _zigzag(dims, reverse=False):
    """A tensor with two elements per dimension, of which no two neighbouring dimensions can be joined to one loop."""
    memory = torch.randn([2] * dims)
    return memory.permute(*reversed(range(dims))) if reverse else memory


class TestDivision:
    @settings(deadline=None)
    @given(st.integers(0, 2**31 - 1), st.integers(1, 2**31 - 1))
    def test_any(self, emulated, dividend, divisor):
        assert emulated.quotient(dividend, divisor) == dividend // divisor

    def test_bounds(self, emulated):
        bounds = [1, 2, 3, 5, 7, 2**16 - 1, 2**16, 2**16 + 1, 2**30 - 1, 2**30, 2**30 + 1, 2**31 - 2, 2**31 - 1]
        for divisor in bounds:
            for dividend in [0, *bounds, *(min(2**31 - 1, divisor * k - 1) for k in (1, 2, 3))]:
                assert emulated.quotient(dividend, divisor) == dividend // divisor


# ---- The LLTM.


def reference(gates, c):
    """The cell after its matrix product, in float64."""
    i, o, z = gates.double().chunk(3, 1)
    i, o, z = torch.sigmoid(i), torch.sigmoid(o), torch.nn.functional.elu(z)
    new_c = c.double() + z * i
    return torch.tanh(new_c) * o, new_c, torch.cat((i, o, z), 1)


def strided(rows, columns, dtype, how):
    """Random values in the memory layout that `how` names."""
    if how == "contiguous":
        return torch.randn(rows, columns).to(dtype)
    if how == "transposed":
        return torch.randn(columns, rows).to(dtype).t()
    if how == "expanded":
        return torch.randn(1, columns).to(dtype).expand(rows, columns)
    if how == "narrow":
        return torch.randn(rows, columns + 8).to(dtype)[:, 8:]
    return torch.randn(rows, 2 * columns + 1).to(dtype)[:, 1::2]


LAYOUTS = ("contiguous", "transposed", "expanded", "narrow", "with gaps")
SIZES = [(1, 1), (3, 8), (5, 7), (2, 16), (16, 128), (4, 130), (0, 4), (3, 0)]


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize(("batch", "state"), SIZES)
@pytest.mark.parametrize("dtype", FLOATING)
class TestLltm:
    def test_join(self, emulated, dtype, batch, state, how):
        for features in (1, 8):
            h, x = strided(batch, state, dtype, how), strided(batch, features, dtype, how)
            joined = torch.full((batch, state + features), float("nan"), dtype=dtype)
            assert emulated.join(h, x, joined) == 0
            assert torch.equal(joined, torch.cat((h, x), 1))

    def test_forward(self, emulated, dtype, batch, state, how):
        c = strided(batch, state, dtype, how)
        gates = torch.randn(batch, 3 * state).to(dtype)
        expected = reference(gates, c)
        new_h, new_c = (torch.full((batch, state), float("nan"), dtype=dtype) for _ in range(2))
        assert emulated.forward(gates, c, new_h, new_c) == 0
        for result, wanted in zip((new_h, new_c, gates), expected, strict=True):
            close(result, wanted, dtype)

    def test_backward(self, emulated, dtype, batch, state, how):
        before = torch.randn(batch, 3 * state, dtype=torch.float64, requires_grad=True)
        c = torch.randn(batch, state, dtype=torch.float64, requires_grad=True)
        grad_h, grad_c = strided(batch, state, dtype, how), strided(batch, state, dtype, how)
        new_h, new_c, gates = reference(before, c)
        wanted = torch.autograd.grad((new_h, new_c), (before, c), (grad_h.double(), grad_c.double()))
        d_gates = torch.full((batch, 3 * state), float("nan"), dtype=dtype)
        d_c = torch.full((batch, state), float("nan"), dtype=dtype)
        given = gates.detach().to(dtype), new_c.detach().to(dtype)
        assert emulated.backward(grad_h, grad_c, *given, d_gates, d_c) == 0
        # The kernel gets rounded gates.
        slack = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 8e-2}[dtype]
        for result, expected in zip((d_gates, d_c), wanted, strict=True):
            torch.testing.assert_close(result.double(), expected, rtol=slack, atol=slack)


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (1, 1), (16, 384), (5, 257), (64, 300), (3, 0)])
@pytest.mark.parametrize("dtype", FLOATING)
def test_column_sums(emulated, dtype, rows, columns):
    matrix, sums = torch.randn(rows, columns).to(dtype), torch.full((columns,), float("nan"), dtype=dtype)
    assert emulated.column_sums(matrix, sums) == 0
    torch.testing.assert_close(sums.double(), matrix.double().sum(0), rtol=TOLERANCE[dtype], atol=8 * TOLERANCE[dtype])


def test_another_number_of_inputs_is_an_error(emulated):
    """A wrong number of inputs returns the codes that Launch.check() knows."""
    assert [emulated.swish_of(torch.ones(2), inputs) for inputs in (0, 2)] == [-2, -3]


def test_another_dtype_has_no_kernel(emulated):
    x = torch.zeros(2, 3, dtype=torch.int32)
    assert emulated.join(x, x, torch.zeros(2, 6, dtype=torch.int32)) == -1
