"""Vectorised functions are accurate to 3 ulp, agree with torch at the edges, and follow ATEN_CPU_CAPABILITY."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import HAVING
from elftools.elf.elffile import ELFFile
from torch.nn import functional

pytestmark = pytest.mark.native

TORCH = {
    "exp": torch.exp,
    "expm1": torch.expm1,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "elu": functional.elu,
}
DTYPES = (torch.float32, torch.float64)
NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def exact(name, x):
    """The values of the function in long double."""
    x = x.numpy().astype(np.longdouble)
    with np.errstate(over="ignore", under="ignore"):
        return {
            "exp": lambda: np.exp(x),
            "expm1": lambda: np.expm1(x),
            "sigmoid": lambda: np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x))),
            "tanh": lambda: np.tanh(x),
            "elu": lambda: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
        }[name]()


def finite_values(dtype):
    """Numbers of all magnitudes, and many for which the functions are neither 0, 1 nor infinite."""
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 2 ** (8 * NUMPY[dtype]().itemsize), 50_000, dtype=f"u{NUMPY[dtype]().itemsize}")
    everywhere = bits.view(NUMPY[dtype])
    limit = 90 if dtype == torch.float32 else 720
    near = [generator.uniform(-reach, reach, 50_000).astype(NUMPY[dtype]) for reach in (1, 20, limit)]
    x = np.concatenate([everywhere[np.isfinite(everywhere)], *near])
    return torch.from_numpy(x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", TORCH)
class TestValues:
    def test_within_three_units_in_the_last_place(self, vectors, name, dtype):
        x = finite_values(dtype)
        got, want = vectors.apply(name, x).numpy(), exact(name, x)
        with np.errstate(over="ignore"):
            rounded = want.astype(NUMPY[dtype])
        fits = np.isfinite(rounded)
        assert np.array_equal(got[~fits], rounded[~fits])
        unit = np.spacing(np.abs(rounded[fits])).astype(np.longdouble)
        assert np.max(np.abs(got[fits] - want[fits]) / unit) < 3

    def test_the_edges_are_those_of_torch(self, vectors, name, dtype):
        info = torch.finfo(dtype)
        edges = [0.0, info.tiny, info.smallest_normal / 4, info.max, float("inf"), 1e4, 104.0, 746.0]
        x = torch.tensor([*edges, *(-edge for edge in edges), float("nan")], dtype=dtype)
        torch.testing.assert_close(
            vectors.apply(name, x), TORCH[name](x), rtol=1e-6, atol=float(info.tiny), equal_nan=True
        )

    @pytest.mark.parametrize("n", [0, 1, 3, 7, 8, 15, 16, 17, 33, 100])
    def test_any_length(self, vectors, name, dtype, n):
        x = torch.linspace(-3, 3, n, dtype=dtype)
        torch.testing.assert_close(vectors.apply(name, x), TORCH[name](x))


@pytest.mark.parametrize("name", TORCH)
def test_bfloat16_is_rounded_once(vectors, name):
    x = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(torch.bfloat16)  # all bfloat16 values
    wanted = TORCH[name](x.double()).bfloat16()
    got = vectors.apply(name, x)
    off = (got != wanted) & ~(got.isnan() & wanted.isnan())
    # A float near the midpoint of two bfloat16 values may round to the other one, and a tiny float to 0.
    assert off.float().mean() < 1e-3
    torch.testing.assert_close(got, wanted, equal_nan=True)


def code_of(module, part):
    """The machine code of the functions of a module whose names have this part."""
    (path,) = Path(module.__file__).parent.glob("_vectors_torch_*.so")
    with path.open("rb") as file:
        elf = ELFFile(file)
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            if part in symbol.name and symbol["st_size"]:
                section = elf.get_section(symbol["st_shndx"])
                begin = symbol["st_value"] - section["sh_addr"]
                yield section.data()[begin : begin + symbol["st_size"]]


@pytest.mark.unchecked(by="asan", reason="the checker's flags put more into a loop")
@pytest.mark.unchecked(by="leaks", reason="the checker's flags put more into a loop")
@pytest.mark.unchecked(by="tsan", reason="the checker's flags put more into a loop")
@pytest.mark.unchecked(by="ubsan", reason="the checker's flags put more into a loop")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="it is about instructions of x86")
def test_the_loop_is_in_the_function_with_the_instructions(vectors):
    """The prefixes of AVX and of AVX-512 are rare as other bytes. A loop that is not inlined there has neither."""
    for part, prefixes in (("with_avx2", b"\xc4\xc5"), ("with_avx512", b"\x62")):
        found = list(code_of(vectors, part))
        assert len(found) == 3  # of the element types
        for code in found:
            assert sum(byte in prefixes for byte in code) > len(code) / 50


RESULTS = """
import sys, torch, vectors
x = torch.arange(-5000, 5001) / 512
torch.save([vectors.apply(name, x) for name in vectors.NAMES], sys.argv[1])
print(torch.backends.cpu.get_cpu_capability())
"""


@pytest.mark.long
@pytest.mark.extended
def test_each_instruction_set(site, tmp_path, vectors):
    x = torch.arange(-5000, 5001) / 512
    results, chosen = {}, {}
    for capability in HAVING:
        file = tmp_path / capability
        environment = os.environ | {"ATEN_CPU_CAPABILITY": capability, "PYTHONPATH": str(site)}
        done = subprocess.run(
            [sys.executable, "-c", RESULTS, file], env=environment, capture_output=True, text=True, check=True
        )
        chosen[capability] = done.stdout.strip()
        results[capability] = torch.load(file)
        for name, result in zip(vectors.NAMES, results[capability], strict=True):
            torch.testing.assert_close(result.double(), TORCH[name](x.double()), rtol=2e-7, atol=0)
    if chosen.get("avx2") == "AVX2":
        # A fused multiply-add rounds once, so different last bits show which code ran.
        assert not torch.equal(results["default"][0], results["avx2"][0])
