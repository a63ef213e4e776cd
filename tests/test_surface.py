"""Cython and C++ accept a call of every declared signature.

`make test-surface` compiles all of them. Otherwise it is a random twentieth, another one whenever the declarations or
this code change. What was compiled is not compiled again.
"""

import hashlib
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import BUILD, TESTS, fingerprint
from surface.calls import every_call, module

ALL = os.environ.get("INTEROP_SURFACE") == "all"
CALLS_A_FILE = 600


def compile_calls(name, calls, stamp):
    """Compiles `calls` as module `name`; returns what went wrong. `stamp` stands for everything else that matters."""
    folder = BUILD / "surface" / name
    folder.mkdir(parents=True, exist_ok=True)
    text = module(calls)
    wanted = hashlib.sha256((stamp + text).encode()).hexdigest()
    done = folder / "done"
    if done.exists() and done.read_text() == wanted:
        return ""
    (folder / f"{name}.pyx").write_text(text)
    command = [sys.executable, TESTS / "surface" / "compile.py", f"{name}.pyx"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    if run.returncode:
        return f"{run.stdout}{run.stderr}"
    done.write_text(wanted)
    return ""


def compile_all(prefix, calls):
    """As compile_calls, in files of a few hundred and two at a time."""
    stamp = fingerprint(TESTS / "surface")
    jobs = [(f"{prefix}_{i:02}", calls[i::files]) for files in [-(-len(calls) // CALLS_A_FILE)] for i in range(files)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return "\n".join(filter(None, pool.map(lambda job: compile_calls(*job, stamp), jobs)))


@pytest.fixture(scope="module")
def calls():
    return every_call()


def test_every_declared_signature(calls, record_property, capsys):
    if ALL:
        chosen = calls
    else:
        seed = fingerprint(TESTS / "surface")[:8]
        chosen = random.Random(seed).sample(calls, len(calls) // 20)
    problems = compile_all("all" if ALL else "sample", chosen)
    with capsys.disabled():
        print(f"\n{len(chosen)} of {len(calls)} declared calls compiled")
    assert problems == ""


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ("at.trace()", "wrong number of arguments"),
        ("at.trace(small)", "int"),
        ("at.sum(tensor, real)", "no overload of this function takes arguments of these types"),
        ("at.zeros((1.5, 2))", "is not what this parameter"),
        ("tensor.view(real)", "no overload of this function takes arguments of these types"),
        ("at.conv1d(tensor, tensor, real)", "is not what this parameter"),
    ],
)
def test_a_wrong_call_is_refused(call, complaint):
    name = "wrong_" + hashlib.sha256(call.encode()).hexdigest()[:8]
    assert complaint in compile_all(name, [call])
