"""Each patch of Cython's compiler is still needed and works, and a build survives without it."""

import contextlib
import importlib.metadata
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import Cython
import pytest
from Cython.Compiler.Main import compile_single
from Cython.Compiler.Options import CompilationOptions, default_options

from interop.cython import versions
from interop.cython.patches import PATCHES, WHOLE_PATHS, Patch, applied
from interop.cython.translate import translate
from interop.cython.versions import CEILING, running
from interop.toolchain import CXX_FLAGS, compiler

UPSTREAM = Path(__file__).resolve().parents[2] / "docs" / "upstream"
HEAD = '''# distutils: language = c++
# cython: language_level=3
from libcpp.vector cimport vector

cdef extern from *:
    """
    #include <vector>
    template <class T> T twice(T x) { return x + x; }
    template <class T> std::vector<T> listed(const T& x) { return {x}; }
    template <class T> double moved(T&& x) { return x; }
    template <class T> T same(T x) { return x; }
    template <class T, class Slice> int dimensions(const Slice&) { return 1; }
    """
    T twice[T](T x)
    vector[T] listed[T](const T& x)
    double moved[T](T&& x)
    T same[T](T x)
'''
PROBES = {
    "PyrexTypes:TemplatePlaceholderType.deduce_template_params": (
        "cdef double of_value(vector[double]& v):\n    return twice(v[0])\n"
    ),
    "PyrexTypes:CReferenceType.deduce_template_params": (
        "cdef double of_reference(vector[double]& v):\n    return listed(v[0])[0]\n"
    ),
    "PyrexTypes:CppRvalueReferenceType.deduce_template_params": (
        "cdef double of_forwarded(double x):\n    cdef double y = x\n    return moved(y)\n"
    ),
    "Symtab:ModuleScope.declare_tuple_type": (
        "cdef double of_tuple(vector[double]& v):\n    return same((v[0], 1.0))[0]\n"
    ),
    "ExprNodes:CmpNode.generate_operation_code": (
        "cdef extern from *:\n"
        '    """\n    struct Compared { bool operator<(double x) const { return x > 0; } };\n    """\n'
        "    cdef cppclass Compared:\n        bint operator<(double x) except +\n"
        "cdef bint of_a_number(Compared x) except *:\n    return x < 1.5\n"
    ),
    "PyrexTypes:MemoryViewSliceType.valid_dtype": (
        "cdef extern from *:\n    int dimensions[T](T[:] x)\ndef of_view(double[:] x):\n    return dimensions(x)\n"
    ),
    "PyrexTypes:MemoryViewSliceType.deduce_template_params": (
        "cdef extern from *:\n    int dimensions[T](T[:] x)\ndef of_view(double[:] x):\n    return dimensions(x)\n"
    ),
}


def problem(folder, source, patches):
    """The error of Cython, with these patches, or of the compiler for a source; None if there is none."""
    (folder / "probe.pyx").write_text(HEAD + source)
    cpp = folder / "probe.cpp"
    options = CompilationOptions(default_options, cplus=True, output_file=str(cpp), errors_to_stderr=False)
    with applied(patches):
        try:
            result = compile_single(str(folder / "probe.pyx"), options, full_module_name="probe")
        except Exception as error:  # Cython's compiler may raise any error for code that it does not expect
            return f"Cython: {error}"
    if result.num_errors:
        return "Cython"
    include = f"-I{sysconfig.get_path('include')}"
    done = subprocess.run([*compiler(), *CXX_FLAGS, include, "-fsyntax-only", str(cpp)], capture_output=True, text=True)
    return done.stderr if done.returncode else None


def test_every_patch_has_a_probe():
    assert {patch.target for patch in PATCHES} == PROBES.keys()


def test_with_all_patches(tmp_path):
    assert problem(tmp_path, "".join(dict.fromkeys(PROBES.values())), PATCHES) is None


@pytest.mark.parametrize("patch", [one for one in PATCHES if one.is_needed()], ids=lambda patch: patch.target)
@pytest.mark.long
def test_the_patch_may_not_go_yet(tmp_path, patch):
    """Without this patch alone, its probe does not compile. If this test fails, Cython no longer needs the patch."""
    others = [one for one in PATCHES if one is not patch]
    assert problem(tmp_path, PROBES[patch.target], others), f"Cython {Cython.__version__} does without {patch.target}"


def test_whole_paths_may_not_go_yet(tmp_path, monkeypatch):
    (tmp_path / "named.pyx").write_text("def f():\n    raise ValueError\n")
    monkeypatch.chdir(tmp_path)
    texts = []
    for whole in (False, True):
        translate("named.pyx", "named", tmp_path / "named.cpp", declarations=tmp_path, whole_paths=whole)
        texts.append((tmp_path / "named.cpp").read_text())
    assert f'"{tmp_path}/named.pyx"' not in texts[0]
    assert f'"{tmp_path}/named.pyx"' in texts[1]


@pytest.mark.parametrize("target", ["Symtab:ModuleScope.gone", "Symtab:Gone.method", "Gone:ModuleScope.gone"])
def test_a_missing_name_costs_no_build(tmp_path, target):
    gone = Patch(target, make=lambda original: original, without="nothing")
    assert gone.owner() is None
    (tmp_path / "m.pyx").write_text("cdef int one = 1\n")
    with applied([gone]), contextlib.chdir(tmp_path):
        translate("m.pyx", "m", tmp_path / "m.cpp", declarations=tmp_path)
    assert (tmp_path / "m.cpp").stat().st_size > 1000


def test_all_is_as_before_afterwards(tmp_path):
    """All patches are undone. A class whose inherited method was patched has none of its own again."""
    owners = [patch.owner() for patch in (*PATCHES, *WHOLE_PATHS) if patch.owner()]
    before = [vars(owner).get(name) for owner, name in owners]
    assert owners
    (tmp_path / "m.pyx").write_text("cdef int one = 1\n")
    translate(str(tmp_path / "m.pyx"), "m", tmp_path / "m.cpp", declarations=tmp_path, whole_paths=True)
    assert [vars(owner).get(name) for owner, name in owners] == before


@pytest.mark.long
@pytest.mark.skipif(running() != CEILING, reason="the changes are for the newest release of Cython that is supported")
def test_the_changes_for_cython_make_patches_needless(tmp_path):
    changed = tmp_path / "changed"
    shutil.copytree(Path(Cython.__file__).parent, changed / "Cython", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(Path(Cython.__file__).parents[1] / "cython.py", changed)
    named = {patch.upstream for patch in PATCHES if patch.is_needed()}
    assert {path.name for path in UPSTREAM.glob("*.patch")} == named
    for name in sorted(named, reverse=True):
        subprocess.run(["git", "apply", UPSTREAM / name], cwd=changed, check=True)
    probes = "".join(dict.fromkeys(PROBES.values()))
    code = (
        f"import sys; sys.path[:0] = [{str(changed)!r}, {str(Path(__file__).parent)!r}]\n"
        "import pathlib, Cython, test_patches\n"
        f"assert Cython.__file__.startswith({str(changed)!r})\n"
        f"print(test_patches.problem(pathlib.Path({str(tmp_path)!r}), {probes!r}, []))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "None\n", done.stdout + done.stderr


class TestVersions:
    def test_below_the_floor(self):
        with pytest.raises(versions.CythonVersionError, match=r"Cython 3\.1 to 3\.3, but Cython 3\.0\.12 is installed"):
            versions._check("3.0.12")

    @pytest.mark.parametrize("version", ["3.1.0", "3.2.9", "3.3.1", "3.3.99", "3.3.2a1"])
    def test_between(self, version):
        versions._check(version)

    @pytest.mark.parametrize("version", ["3.4.0", "3.4b1", "4.0.0"])
    def test_above_the_ceiling(self, version):
        versions._check.cache_clear()
        with pytest.warns(UserWarning, match=rf"supports Cython 3\.1 to 3\.3, but Cython {version} is installed"):
            versions._check(version)
        versions._check(version)  # it warns only once

    def test_the_metadata_names_the_floor(self):
        """So pip installs no Cython below the floor."""
        requirements = importlib.metadata.requires("torch-interop")
        assert f"Cython>={versions.FLOOR[0]}.{versions.FLOOR[1]}" in requirements
