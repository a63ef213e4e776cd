"""fast_rnnt: the dynamic program of the RNN-T loss, and the losses that its users call.

Its C++ knows float32 and float64 only; so does the port.
"""

import shlex
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from experiments.ports.base import Operation, Port

__all__ = ["PORT"]

DTYPES = (torch.float32, torch.float64)
FLOOR = -1e30
"""What the reference takes for minus infinity, because sums and differences of it are no nan."""


# ---- The reference: value by value, in double.


def recursion(px: Tensor, py: Tensor, boundary: Tensor | None = None) -> Tensor:
    """`mutual_information_recursion` as its definition says it. An item without a path has the gradient zero."""
    lag = int(px.size(2) == py.size(2))
    if boundary is None:
        boundary = torch.tensor([0, 0, px.size(1), py.size(2)]).expand(px.size(0), 4)
    scores = []
    for x, y, bounds in zip(px.double().clamp(min=FLOOR), py.double().clamp(min=FLOOR), boundary.tolist(), strict=True):
        s_begin, t_begin, s_end, t_end = bounds
        p = {}
        for s in range(s_begin, s_end + 1):
            for t in range(t_begin, t_end + 1):
                terms = [x.new_tensor(0 if (s, t) == (s_begin, t_begin) else FLOOR)]
                if s > s_begin and t - lag >= t_begin:
                    terms.append(p[s - 1, t - lag] + x[s - 1, t - lag])
                if t > t_begin:
                    terms.append(p[s, t - 1] + y[s, t - 1])
                p[s, t] = torch.stack(terms).logsumexp(0)
        score = p[s_end, t_end]
        scores.append(torch.where(score < FLOOR / 2, -torch.inf, score))
    return torch.stack(scores).to(px.dtype) if scores else px.new_empty(0)


def recursion_and_gradients(px: Tensor, py: Tensor, boundary: Tensor | None = None) -> tuple[Tensor, ...]:
    """`mutual_information_recursion` with `return_grad`."""
    with torch.enable_grad():
        leaves = px.detach().requires_grad_(), py.detach().requires_grad_()
        scores = recursion(*leaves, boundary)
        return scores.detach(), *torch.autograd.grad(scores.sum(), leaves)


def loss(
    logits: Tensor,
    symbols: Tensor,
    termination_symbol: int,
    boundary: Tensor | None = None,
    rnnt_type: str = "regular",
) -> Tensor:
    """`rnnt_loss` for each item."""
    count, frames = symbols.size(1), logits.size(1)
    probabilities = logits.double().log_softmax(3)
    py = probabilities[..., termination_symbol].mT
    px = torch.stack(
        [
            probabilities[:, :, s].gather(2, symbols[:, None, s : s + 1].expand(-1, frames, -1))[..., 0]
            for s in range(count)
        ],
        1,
    )
    if rnnt_type == "constrained":
        px = px + py[:, 1:]
    elif rnnt_type == "regular":
        px = torch.cat([px, px.new_full((px.size(0), count, 1), -torch.inf)], 2)
        after = torch.arange(frames + 1) >= (frames if boundary is None else boundary[:, None, None, 3])
        px = px.masked_fill(after, -torch.inf)
    return -recursion(px, py, boundary).to(logits.dtype)


def simple_loss(lm: Tensor, am: Tensor, *others: object) -> Tensor:
    """`rnnt_loss_simple` for each item."""
    return loss(lm[:, None] + am[:, :, None], *others)


# ---- Inputs. A size is batch x symbols x frames, and where there are logits, x classes.


def numbers_of(size: str) -> list[int]:
    """The numbers in the label of a size."""
    return [int(number) for number in size.split(" x ")]


def lattice(size: str, dtype: torch.dtype, modified: bool = False) -> tuple[Tensor, Tensor]:
    """px and py. The probabilities of the two steps that leave a point add up to 1, so scores stay small."""
    batch, symbols, frames = numbers_of(size)
    generator = torch.Generator().manual_seed(1)
    odds = torch.randn(batch, symbols + 1, frames + 1, generator=generator, dtype=torch.float64)
    px, py = odds.sigmoid().log()[:, :-1], (-odds).sigmoid().log()[:, :, :-1]
    if modified:
        px = px[:, :, :-1]
    return px.to(dtype).contiguous(), py.to(dtype).contiguous()


def modified_lattice(size: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The same for the modified variant."""
    return lattice(size, dtype, True)


def ragged_lattice(size: str, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """px, py and a boundary: between half and all of the symbols and frames."""
    batch, symbols, frames = numbers_of(size)
    generator = torch.Generator().manual_seed(2)
    ends = [torch.randint(n // 2, n + 1, (batch,), generator=generator) for n in (symbols, frames)]
    zeros = torch.zeros(batch, dtype=torch.int64)
    return *lattice(size, dtype), torch.stack([zeros, zeros, *ends], 1)


def simple_logits(size: str, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, int]:
    """lm, am, symbols and the termination symbol; the next symbol and the blank are likely, so scores stay small."""
    batch, symbols, frames, classes = numbers_of(size)
    generator = torch.Generator().manual_seed(3)
    lm, am = (torch.randn(batch, n, classes, generator=generator) for n in (symbols + 1, frames))
    right = torch.randint(1, classes, (batch, symbols), generator=generator)
    lm[:, :-1].scatter_(2, right.unsqueeze(2), 8.0)
    lm[:, :, 0] = 8.0
    return lm.to(dtype), am.to(dtype), right, 0


def joint_logits(size: str, dtype: torch.dtype) -> tuple[Tensor, Tensor, int]:
    """logits, symbols and the termination symbol."""
    batch, symbols, frames, classes = numbers_of(size)
    generator = torch.Generator().manual_seed(4)
    logits = torch.randn(batch, frames, symbols + 1, classes, generator=generator).to(dtype)
    return logits, torch.randint(1, classes, (batch, symbols), generator=generator), 0


# ---- The two ways. Both import what they call when they call it.


def original(name: str, **options: object) -> Callable[..., object]:
    """A function of fast_rnnt."""

    def call(*arguments: object) -> object:
        import fast_rnnt

        return flat(getattr(fast_rnnt, name)(*arguments, **options))

    return call


def ours(name: str, **options: object) -> Callable[..., object]:
    """The function of that name here."""

    def call(*arguments: object) -> object:
        from experiments.ports.rnnt import loss as losses

        return flat(getattr(losses, name)(*arguments, **options))

    return call


def flat(result: object) -> object:
    """(scores, (px_grad, py_grad)) as one tuple."""
    return (result[0], *result[1]) if isinstance(result, tuple) else result


# ---- How the original is built: with cmake and make, which must be on the path, and without the network.

CMAKE = {
    "CMAKE_BUILD_TYPE": "Release",  # -O3, and no -g
    "CMAKE_CXX_STANDARD": "20",  # what torch's headers need; it would be 14
    "FETCHCONTENT_SOURCE_DIR_PYBIND11": str(Path(__file__).parent / "pybind11"),
    "FT_BUILD_TESTS": "OFF",
    "FT_WITH_CUDA": "OFF",
    "PYTHON_EXECUTABLE": sys.executable,
    "PYTHON_INCLUDE_DIRS": sysconfig.get_path("include"),
}
ENVIRONMENT = {
    "FT_CMAKE_ARGS": " ".join(f"-D{name}={shlex.quote(value)}" for name, value in CMAKE.items()),
    "FT_MAKE_ARGS": "-j1",  # it would start a compiler for each source at once
}

LATTICES = ("2 x 10 x 40", "8 x 40 x 160", "16 x 80 x 400")
RECURSION = "mutual_information_recursion"

PORT = Port(
    name="rnnt",
    requirement="fast_rnnt==1.3",
    module="fast_rnnt",
    original_sources=(
        "fast_rnnt/csrc/mutual_information.h",
        "fast_rnnt/csrc/mutual_information_cpu.cu",
        "fast_rnnt/python/csrc/*.h",
        "fast_rnnt/python/csrc/*.cu",
    ),
    operations=(
        Operation("recursion", DTYPES, LATTICES, lattice, original(RECURSION), ours(RECURSION), recursion, True),
        Operation(
            "recursion, modified",
            DTYPES,
            LATTICES,
            modified_lattice,
            original(RECURSION),
            ours(RECURSION),
            recursion,
            True,
        ),
        Operation(
            "recursion, ragged", DTYPES, LATTICES, ragged_lattice, original(RECURSION), ours(RECURSION), recursion, True
        ),
        Operation(
            "recursion, return_grad",
            DTYPES,
            LATTICES,
            lattice,
            original(RECURSION, return_grad=True),
            ours(RECURSION, return_grad=True),
            recursion_and_gradients,
            False,
        ),
        Operation(
            "rnnt_loss_simple",
            DTYPES,
            ("2 x 10 x 40 x 50", "8 x 40 x 160 x 100", "16 x 80 x 400 x 500"),
            simple_logits,
            original("rnnt_loss_simple", reduction="none"),
            ours("rnnt_loss_simple", reduction="none"),
            simple_loss,
            True,
        ),
        Operation(
            "rnnt_loss",
            DTYPES,
            ("2 x 10 x 40 x 50", "4 x 20 x 80 x 100", "4 x 40 x 160 x 200"),
            joint_logits,
            original("rnnt_loss", reduction="none"),
            ours("rnnt_loss", reduction="none"),
            loss,
            True,
        ),
    ),
    environment=ENVIRONMENT,
    tests=("fast_rnnt/python/tests/*_test.py",),
    package="fast_rnnt/python",
)
