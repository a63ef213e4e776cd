"""Cython and C++ accept a call of every declared signature.

`make test-surface` compiles all of them. Other runs compile a random twentieth, which changes whenever the declarations
or this code change. Calls that were compiled are not compiled again.
"""

import hashlib
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import BUILD, TESTS, fingerprint, needs_stable
from surface.calls import every_call, module

from interop.toolchain import MINIMUM_STABLE

ALL = os.environ.get("INTEROP_SURFACE") == "all"
CALLS_A_FILE = 600


def compile_calls(name, calls, stamp, stable):
    """Compiles `calls` as module `name`, and returns the errors. `stamp` is a hash of all other inputs.

    `stable` is empty, or has the oldest release of torch that the module is for.
    """
    folder = BUILD / "surface" / name
    folder.mkdir(parents=True, exist_ok=True)
    text = module(calls, for_stable=bool(stable))
    wanted = hashlib.sha256((stamp + text).encode()).hexdigest()
    done = folder / "done"
    if done.exists() and done.read_text() == wanted:
        return ""
    (folder / f"{name}.pyx").write_text(text)
    command = [sys.executable, TESTS / "cython" / "surface" / "compile.py", f"{name}.pyx", *stable]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    if run.returncode:
        return f"{run.stdout}{run.stderr}"
    done.write_text(wanted)
    return ""


def compile_all(units, stable=()):
    """The errors of each unit, by its name. `units` are calls by name, which all processors compile."""
    stamp = fingerprint(TESTS / "cython" / "surface")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(units, pool.map(lambda unit: compile_calls(*unit, stamp, stable), units.items()), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "stable", [(), pytest.param((".".join(map(str, MINIMUM_STABLE)),), marks=needs_stable)], ids=["one", "many"]
)
def test_every_declared_signature(capsys, stable):
    """Modules for one release of torch and for many compile them."""
    calls, name = every_call(for_stable=bool(stable)), "stable" if stable else "native"
    if ALL:
        chosen = calls
    else:
        seed = fingerprint(TESTS / "cython" / "surface")[:8]
        name, chosen = f"{name}_sample", random.Random(seed).sample(calls, len(calls) // 20)
    files = -(-len(chosen) // CALLS_A_FILE)
    problems = compile_all({f"{name}_{i:02}": chosen[i::files] for i in range(files)}, stable)
    with capsys.disabled():
        print(f"\n{len(chosen)} of {len(calls)} declared calls compiled")
    assert "\n".join(filter(None, problems.values())) == ""


WRONG = (  # in units: C++ sees only calls that Cython accepts, and both report only the first of some errors
    {"at.trace()": "wrong number of arguments"},
    {"at.trace(small)": "Cannot assign type 'int'"},
    {
        "at.sum(tensor, real)": "no overload of this function takes arguments of these types",
        "at.zeros((1.5, 2))": "takes no argument of type A",
    },
    {
        "tensor.view(real)": "no overload of this function takes arguments of these types",
        "at.conv1d(tensor, tensor, real)": "takes no argument of type A",
    },
)


@pytest.fixture(scope="module")
def refusals():
    """The errors of each unit of wrong calls."""
    said = compile_all({f"wrong_{i:02}": list(unit) for i, unit in enumerate(WRONG)})
    return list(said.values())


@pytest.mark.parametrize(("call", "unit"), [(call, i) for i, unit in enumerate(WRONG) for call in unit])
@pytest.mark.long
@pytest.mark.extended
def test_a_wrong_call_is_refused(call, unit, refusals):
    assert WRONG[unit][call] in refusals[unit]
