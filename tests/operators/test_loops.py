"""Loops over torch's threads run every iteration once, on torch's number of threads, and pass errors to the caller."""

import re
import shutil
import threading
import traceback
from pathlib import Path

import pytest
import torch
from conftest import (
    IMPORT_INTERPRETERS,
    import_from,
    leaves_daemon_threads,
    not_in_debug_python,
    owns_to_the_end,
    run,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from interop.toolchain import openmp_flags

pytestmark = [
    pytest.mark.native,
    pytest.mark.usefixtures("two_threads"),
]


@pytest.fixture(scope="session")
def loops(site):
    return import_from(site, "loops")


@pytest.fixture
def one_thread(two_threads):
    torch.set_num_threads(1)


class TestParts:
    @settings(deadline=None, max_examples=200)
    @given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 70), st.integers(1, 4), st.booleans())
    def test_each_iteration_is_in_one_part(self, loops, begin, end, grain, threads, hold_gil):
        torch.set_num_threads(threads)
        parts, owner = loops.split(begin, end, grain, hold_gil)
        expected = torch.zeros(max(begin, end), dtype=torch.long)
        for part_begin, part_end, *_ in parts:
            expected[part_begin:part_end] = part_begin + 1
        assert torch.equal(owner, expected)
        assert (owner != 0).sum() == max(end - begin, 0)
        assert len(parts) <= min(threads, -(-max(end - begin, 0) // max(grain, 1)))
        assert len(parts) > 1 or end - begin <= max(grain, 1) or threads == 1
        assert [part[2] for part in parts] == list(range(len(parts)))
        assert all(in_region == (len(parts) > 1) for *_, in_region, _ in parts)

    def test_both_threads_work(self, loops):
        assert [part[:3] for part in loops.split(0, 10, 1)[0]] == [(0, 5, 0), (5, 10, 1)]

    def test_parts_run_at_the_same_time(self, loops):
        """Otherwise `meet` does not return."""
        loops.meet()

    @pytest.mark.usefixtures("one_thread")
    def test_one_thread(self, loops):
        assert [part[:2] for part in loops.split(0, 10, 1)[0]] == [(0, 10)]

    def test_the_callers_modes_do_not_reach_the_other_thread(self, loops):
        with torch.no_grad():
            assert [part[-1] for part in loops.split(0, 10, 1)[0]] == [False, True]

    def test_python_on_both_threads(self, loops):
        (begin, end, thread), (begin2, end2, thread2) = loops.into_list(10)
        assert (begin, end, begin2, end2) == (0, 5, 5, 10)
        assert thread == threading.get_ident() != thread2

    def test_in_a_module_without_openmp(self, site):
        assert import_from(site, "serial").parts(10).tolist() == [0] * 5 + [5] * 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_part_for_each_dtype(loops, dtype):
    x = torch.arange(1000, dtype=dtype)
    loops.double_(x)
    assert torch.equal(x, 2 * torch.arange(1000, dtype=dtype))
    with pytest.raises(NotImplementedError, match="\"double_\" not implemented for 'Short', only for Float, Long"):
        loops.double_(x.short())


class TestErrors:
    @pytest.mark.parametrize("hold_gil", [False, True])
    @pytest.mark.parametrize("begin", [0, 5])
    @pytest.mark.parametrize(
        ("kind", "functions"),
        [("except *", ["_raise"]), ("noexcept", []), ("within", ["_raise_within", "_inner"])],
    )
    def test_reach_the_caller(self, loops, capfd, kind, functions, begin, hold_gil):
        with pytest.raises(loops.Told) as caught:
            loops.raising(kind, begin, 10, hold_gil)
        assert caught.value.args == ("from", begin)
        frames = [frame.name.removeprefix("loops.") for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert frames == [frames[0], "raising", *functions]
        assert capfd.readouterr().err == ""  # no "Exception ignored"

    def test_of_two_one_is_raised(self, loops, capfd):
        with pytest.raises(loops.Told) as caught:
            loops.raising("everywhere", 0, 10)
        assert caught.value.args in {("from", 0), ("from", 5)}
        assert capfd.readouterr().err == ""

    @pytest.mark.parametrize("begin", [0, 5])
    def test_of_torch(self, loops, begin):
        with pytest.raises(RuntimeError) as expected:
            torch.zeros(2).view(3)
        with pytest.raises(RuntimeError, match=f"^{re.escape(str(expected.value))}$"):
            loops.raising("c++", begin, 10)

    def test_a_function_stops_where_what_it_calls_raises(self, loops):
        """The function checks for the error on a thread that Python does not know."""
        for begin in (0, 5):
            with pytest.raises(loops.Told) as caught:
                loops.raising("within", begin, 10)
            assert caught.value.args == ("from", begin)
            assert loops.raising("within", -7, 10) == (-7, 0)

    def test_caught_in_the_function_they_are_gone(self, loops):
        assert loops.raising("caught", 0, 10) == (0, 2)

    def test_leave_the_threads_usable(self, loops):
        for _ in range(50):
            with pytest.raises(loops.Told):
                loops.raising("everywhere", 0, 10)
        assert len(loops.split(0, 10, 1)[0]) == 2

    @pytest.mark.parametrize(
        ("what", "message"),
        [
            ("NULL", "the function to call must not be NULL"),
            ("reduce NULL", "the function to call must not be NULL"),
            ("grain", "argument 'grain' must be 0 or .*, got -1"),
            ("reduce grain", "argument 'grain' must be 0 or .*, got -2"),
        ],
    )
    def test_wrong_arguments(self, loops, what, message):
        with pytest.raises(ValueError, match=message):
            loops.wrong(what)

    def test_from_several_callers_at_once(self, loops):
        wrong = []

        def call():
            for _ in range(20):
                try:
                    loops.raising("except *", 5, 10)
                    wrong.append("nothing")
                except loops.Told as error:
                    if error.args != ("from", 5):
                        wrong.append(error)

        callers = [threading.Thread(target=call) for _ in range(3)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert wrong == []


class TestReductions:
    @pytest.mark.parametrize("n", [0, 1, 1000])
    @pytest.mark.parametrize("grain", [0, 1, 300, 2000])
    def test_a_sum(self, loops, n, grain):
        x = torch.randint(100, (n,)).double()
        assert loops.total(x, grain) == x.sum()

    @pytest.mark.parametrize("threads", [1, 2, 3])
    def test_parts_are_combined_in_their_order(self, loops, threads):
        torch.set_num_threads(threads)
        assert loops.digits(1, 9) == 12345678
        assert loops.digits(4, 4, -1, 3) == 3  # the identity

    def test_errors_reach_the_caller(self, loops):
        with pytest.raises(loops.Told) as caught:
            loops.digits(1, 9, 2)
        assert caught.value.args == ("from", 5)
        with pytest.raises(loops.Told) as caught:
            loops.digits(1, 9, -1, -1)
        assert caught.value.args[0] == "combining"


@pytest.mark.skipif(not openmp_flags(), reason="with this compiler prange has one thread: see the kernels guide")
@pytest.mark.unchecked(by="tsan", reason="it does not see how OpenMP orders the threads of prange")
class TestPrange:
    def test_uses_the_threads_of_torch(self, loops):
        torch.set_num_threads(2)
        assert loops.prange_threads(4, 2).tolist() == [0, 0, 1, 1]
        assert loops.prange_threads(4, 0).tolist() == [0, 0, 1, 1]
        torch.set_num_threads(1)
        assert loops.prange_threads(4, 0).tolist() == [0, 0, 0, 0]
        assert loops.prange_threads(4, 2).tolist() == [0, 0, 1, 1]  # the loop's own number takes precedence

    def test_torch_and_openmp_have_one_number(self, loops):
        torch.set_num_threads(1)
        assert loops.omp_threads() == 1
        assert loops.omp_threads(2) == torch.get_num_threads() == 2
        assert len(loops.split(0, 10, 1)[0]) == 2

    def test_within_a_part_it_has_one_thread(self, loops):
        assert loops.prange_in_parallel_for(4).tolist() == [[0, 0]] * 4

    def test_around_parallel_for_leaves_it_one_part(self, loops):
        assert loops.parallel_for_in_prange(8).tolist() == [1, 1]

    def test_raises_as_cython_says(self, loops):
        with pytest.raises(loops.Told) as caught:
            loops.prange_raises(4)
        assert caught.value.args == ("from", 3)


def libraries_of_openmp():
    """A statement that prints the files of the loaded OpenMP libraries."""
    return "print(sorted({l.split()[-1] for l in open('/proc/self/maps') if 'libgomp' in l or 'libiomp' in l}))\n"


@pytest.mark.long
@pytest.mark.extended
class TestOneRuntime:
    def test_no_module_asks_for_a_library_of_openmp(self, site):
        for native in Path(site).glob("_loops*.so"):
            assert "gomp" not in run(["readelf", "--dynamic", native]).replace(str(native), "")

    @pytest.mark.parametrize("first", ["import torch, loops", "import loops"])
    def test_there_is_one_library(self, site, bare, first):
        alone = bare("import torch\n" + libraries_of_openmp())
        assert bare(f"{first}\n{libraries_of_openmp()}", site) == alone
        assert alone.count("gomp") == 1

    @pytest.mark.skipif(not shutil.which("g++"), reason="compiles with g++")
    def test_a_second_library_does_not_know_torchs_settings(self, loops, bare, tmp_path, monkeypatch):
        """The pitfall: a module linked with -fopenmp to a library of another name, and loaded before torch."""
        ours = Path(run(["g++", "-print-file-name=libgomp.so.1"]).strip())
        other = tmp_path / "libgomq.so.1"
        other.write_bytes(ours.read_bytes().replace(b"libgomp.so.1", b"libgomq.so.1"))
        source, library = tmp_path / "other.cpp", tmp_path / "libother.so"
        source.write_text('#include <omp.h>\nextern "C" int threads() { return omp_get_max_threads(); }\n')
        run(["g++", "-fopenmp", "-shared", "-fPIC", source, "-nodefaultlibs", other, "-lc", "-o", library])
        load = f"import ctypes; ctypes.CDLL({str(other)!r}); other = ctypes.CDLL({str(library)!r})\n"
        ask = "torch.set_num_threads(1); print(loops.omp_threads(), other.threads())\n"
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        site = Path(loops.__file__).parent
        assert bare(f"{load}import torch, loops\n{ask}", site) == "1 2\n"
        # torch loads its own library globally, so the symbols of a module loaded later resolve to that one.
        assert bare(f"import torch, loops\n{load}{ask}", site) == "1 1\n"


ASSERTED = "CPython itself aborts if a daemon thread requests the GIL from C while the interpreter ends"


@owns_to_the_end
@leaves_daemon_threads
@pytest.mark.parametrize(
    "call",
    [
        "double_(x)",
        pytest.param("into_list(1000)", marks=not_in_debug_python(reason=ASSERTED)),
        pytest.param("releases_within(100)", marks=not_in_debug_python(reason=ASSERTED)),
    ],
)
def test_daemon_threads_in_functions_that_take_the_gil_again(forked, site, call):
    """CPython up to 3.13 would unwind their stacks at the end, through C++ that cannot be unwound."""
    code = f"""
import threading, time, torch, loops
def forever():
    x = torch.ones(100_000)
    while True:
        loops.{call}
for _ in range(4):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.2)
print("done")
"""
    done = forked(code, site, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


AFTER_ANOTHER_INTERPRETER = f"""
{IMPORT_INTERPRETERS}
import torch, loops
torch.set_num_threads(2)
interpreters.destroy(interpreters.create())
x = torch.ones(100)
loops.double_(x)
print(x.tolist() == [2] * 100, len(loops.into_list(1000)))
"""


def test_after_another_interpreter(forked, site):
    """PyGILState_Check() always says yes then. A loop must find out for itself whether it has a GIL to release."""
    assert forked(AFTER_ANOTHER_INTERPRETER, site) == "True 2\n"
