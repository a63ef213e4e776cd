"""A private name of Cython that is gone costs a hint or a message, and a build only if the module would be wrong."""

import ast
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import setuptools
from Cython.Build import Dependencies
from Cython.Compiler import ExprNodes, Nodes, Pipeline

import interop.cython
from interop.cython import checks, hints, template_arithmetic
from interop.cython.extensions import translate_extensions
from interop.cython.patches import PATCHES, WHOLE_PATHS, Patch
from interop.cython.template_arithmetic import _SET, ARITHMETIC
from interop.cython.translate import translate
from interop.cython.versions import CythonVersionError

PLAIN = "def f(x): return x\n"
IN_PLACE = "cimport ATen as at\ncdef void f(at.Tensor t, at.Tensor u) except *:\n    t += u\n"
LOST_GUARD = "cimport torch\ndef f():\n    torch.NoGradGuard()\n"
TEMPLATE = (
    "from interop cimport any_t, scalar_t\nfrom libc.stdint cimport int64_t\n"
    "cdef void f(int64_t begin, int64_t end, any_t* of) noexcept nogil:\n"
    "    (<scalar_t*> of)[0] = (<scalar_t*> of)[1]\n"
)
# Imported at the top of a module, so no source is translated without these.
NEEDED = {
    "Cython": {"Utils", "__version__"},
    "Cython.Build.Dependencies": {"DependencyTree", "DistutilsInfo", "create_extension_list", "parse_dependencies"},
    "Cython.Compiler": {"Errors", "ExprNodes", "ModuleNode", "Nodes", "PyrexTypes"},
    "Cython.Compiler.Errors": {"CompilerCrash", "error", "get_errors_count"},
    "Cython.Compiler.Main": {"Context", "compile_single"},
    "Cython.Compiler.Options": {"CompilationOptions", "default_options", "get_directive_defaults"},
    "Cython.Compiler.PyrexTypes": {"error_type"},
    "Cython.Compiler.Visitor": {"CythonTransform", "EnvTransform", "TreeVisitor"},
    "Cython.Utils": {"find_root_package_dir"},
}
OPTIONAL = (*PATCHES, *WHOLE_PATHS, *ARITHMETIC[:-1], hints._no_warning(()))


def translated(folder, source):
    (folder / "m.pyx").write_text(source)
    translate(str(folder / "m.pyx"), "m", folder / "m.cpp", declarations=folder / "declarations", whole_paths=True)
    return (folder / "m.cpp").stat().st_size > 1000


def lose(monkeypatch, patch):
    """Delete the method of a patch. If Cython calls it for each source, or has it in a base class, only hide it."""
    owner, name = patch.owner() or (None, "")
    if any(hasattr(base, name) for base in getattr(owner, "__bases__", [None])) or patch in WHOLE_PATHS:
        found = Patch.owner
        monkeypatch.setattr(Patch, "owner", lambda one: None if one is patch else found(one))
    else:
        monkeypatch.delattr(owner, name)


def without_step(monkeypatch, name):
    planned = Pipeline.create_pipeline
    steps = lambda *given, **options: [one for one in planned(*given, **options) if type(one).__name__ != name]  # noqa: E731
    monkeypatch.setattr(Pipeline, "create_pipeline", steps)


@pytest.mark.parametrize("patch", OPTIONAL, ids=lambda patch: patch.target)
def test_a_patch_whose_method_is_gone(tmp_path, monkeypatch, patch):
    lose(monkeypatch, patch)
    assert translated(tmp_path, PLAIN)


@pytest.mark.parametrize(
    ("module", "name", "source"),
    [
        ("Cython.CodeWriter", "ExpressionWriter", LOST_GUARD),
        ("Cython.Compiler.Errors", "AbortError", PLAIN),
        ("Cython.Utils", "detect_opened_file_encoding", PLAIN),
    ],
)
def test_a_name_for_messages_that_is_gone(tmp_path, monkeypatch, module, name, source):
    """Gone for this package: Cython itself uses these names for each source."""
    translated(tmp_path, PLAIN)  # imports Cython's own modules
    rest = ModuleType(module)
    vars(rest).update({other: value for other, value in vars(sys.modules[module]).items() if other != name})
    monkeypatch.setitem(sys.modules, module, rest)
    if source is PLAIN:
        assert translated(tmp_path, source)
    else:
        with pytest.raises(SyntaxError, match=r"would end with its statement; write: cdef torch\.NoGradGuard guard = "):
            translated(tmp_path, source)


@pytest.mark.parametrize("name", ["distutils_settings", "extended_iglob"])
def test_a_name_for_the_sources_of_extensions_that_is_gone(tmp_path, monkeypatch, name):
    """Cython itself uses these names."""
    (tmp_path / f"without_{name}.pyx").write_text(
        "# distutils: libraries = m\n" + PLAIN
    )  # Cython caches it by this name
    monkeypatch.chdir(tmp_path)
    rest = ModuleType("Cython.Build.Dependencies")
    vars(rest).update({other: value for other, value in vars(Dependencies).items() if other != name})
    monkeypatch.setitem(sys.modules, rest.__name__, rest)
    (extension,) = translate_extensions([setuptools.Extension("*", ["*.pyx"])], build_dir="build")
    assert extension.libraries == ["m"]
    assert Path(*extension.sources).exists()


def test_the_includes_of_a_module_are_gone():
    assert list(hints._includes({"m": object()})) == []


def test_what_is_imported_at_the_top():
    """Import any other name of Cython in the function that uses it, and say there what it costs if it is gone."""
    found = {}
    for path in Path(interop.cython.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "Cython":
                found.setdefault(node.module, set()).update(alias.name for alias in node.names)
    assert found == NEEDED


class TestRequired:
    """Without these a module may be wrong, so the error says what would be."""

    @pytest.mark.parametrize("patch", checks._REQUIRED, ids=lambda patch: patch.target)
    def test_a_method(self, tmp_path, monkeypatch, patch):
        lose(monkeypatch, patch)
        with pytest.raises(CythonVersionError) as raised:
            translated(tmp_path, PLAIN)
        assert f"has no {patch.name}, so torch-interop cannot {patch.without}; install" in str(raised.value)

    @pytest.mark.parametrize(
        ("module", "node", "source", "reason"),
        [
            (Nodes, "InPlaceAssignmentNode", IN_PLACE, "cannot reject `t .= u`, whose exception ends the process"),
            (ExprNodes, "YieldExprNode", PLAIN, "cannot reject guards that do nothing"),
        ],
    )
    def test_a_node_that_a_check_visits(self, tmp_path, monkeypatch, module, node, source, reason):
        """Without its check, Cython would translate the first source."""
        renamed = getattr(module, node)
        monkeypatch.delattr(module, node)
        monkeypatch.setattr(module, "Another", renamed, raising=False)
        with pytest.raises(CythonVersionError, match=f"has no {node}, so torch-interop {reason}"):
            translated(tmp_path, source)

    @pytest.mark.parametrize("name", ["AnalyseDeclarationsTransform", "AnalyseExpressionsTransform"])
    def test_a_step(self, tmp_path, monkeypatch, name):
        without_step(monkeypatch, name)
        with pytest.raises(CythonVersionError, match=f"has no {name}, so torch-interop cannot reject"):
            translated(tmp_path, PLAIN)


class TestArithmetic:
    """Only a source with a template needs it."""

    def check(self, folder, name):
        assert translated(folder, PLAIN)
        with pytest.raises(CythonVersionError, match=f"no {name}, so .* cannot prevent wrong numbers of scalar_t"):
            translated(folder, TEMPLATE)

    def test_it_is_there(self, tmp_path):
        assert translated(tmp_path, TEMPLATE)

    @pytest.mark.parametrize("patch", ARITHMETIC[:-1], ids=lambda patch: patch.target)
    def test_a_method(self, tmp_path, monkeypatch, patch):
        lose(monkeypatch, patch)
        self.check(tmp_path, patch.name)

    def test_a_node(self, tmp_path, monkeypatch):
        monkeypatch.setattr(checks.Arithmetic, "visit_RenamedNode", None, raising=False)
        self.check(tmp_path, "RenamedNode")

    @pytest.mark.parametrize(("node", "name"), [(node, name) for node, names in _SET.items() for name in names])
    def test_an_attribute(self, tmp_path, monkeypatch, node, name):
        """Cython would write its own operators, which are wrong for integers."""
        renamed = type(node, (), {other: None for other in _SET[node] if other != name})
        monkeypatch.setattr(template_arithmetic, "ExprNodes", SimpleNamespace(**vars(ExprNodes) | {node: renamed}))
        self.check(tmp_path, f"{node}.{name}")

    def test_which_attributes_it_sets(self):
        """Each assignment to an attribute of a node is in `_SET`."""
        tree = ast.parse(Path(template_arithmetic.__file__).read_text())
        targets = {
            one.attr
            for one in ast.walk(tree)
            if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and ast.unparse(one.value) == "node"
        }
        assert targets == {name for names in _SET.values() for name in names}

    def test_the_step(self, tmp_path, monkeypatch):
        without_step(monkeypatch, "FinalOptimizePhase")
        self.check(tmp_path, "FinalOptimizePhase")
