"""The generated declarations are complete, apart from those left out for a reason, and unambiguous in C++."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import interop
from interop import doctor
from interop.codegen import types
from interop.codegen.overloads import OPEN, overloads
from interop.codegen.pxd import COMMAND, generate
from interop.codegen.surface import Declaration, Parameter, read
from interop.cython.declarations import OPERATORS, cut

PXD, INCLUDE = Path(interop.get_pxd_dir()), Path(interop.get_include())
GENERATED = (
    PXD / "torch/_tensor.pxd",
    PXD / "ATen/Functions.pxd",
    PXD / "interop/functions.pxd",
    PXD / "ATen/core/TensorBody.pxd",
    INCLUDE / "interop/functions.h",
)


@pytest.fixture(scope="module")
def surface():
    return read()


class TestCompleteness:
    def test_every_operator_is_declared_or_has_a_reason(self, surface):
        declared = {declaration.schema for declaration in [*surface.functions, *surface.methods]} | surface.by_hand
        assert len(declared | surface.left_out.keys()) == surface.schemas
        assert all(": " in reason for reason in surface.left_out.values())
        named = [reason for reason in surface.left_out.values() if reason.startswith("Dimname")]  # before torch 2.13
        assert len(surface.left_out) - len(named) < surface.schemas / 100

    def test_what_torch_has_by_hand_is_declared_by_hand(self, surface):
        text = "".join(path.read_text() for path in PXD.rglob("*.pxd"))
        for schema in surface.by_hand:
            name = re.match(r"(\w+)", schema)[1]
            assert name == "_backward" or re.search(rf'\b{name}( "[^"]+")?\(', text), schema

    def test_doctor_prints_the_counts(self, surface, capsys):
        doctor.main(["--coverage"])
        assert f"{surface.schemas} operators in the schema" in capsys.readouterr().out


class TestTypes:
    @pytest.mark.parametrize("convert", [types.parameter, types.result])
    def test_an_unknown_type_stops_the_generator(self, convert):
        with pytest.raises(types.UnknownTypeError, match="at::Novelty"):
            convert("at::Novelty")
        with pytest.raises(types.UnknownTypeError, match="at::Novelty"):
            convert("::std::optional<at::Novelty>" if convert is types.parameter else "::std::vector<at::Novelty>")

    def test_nested_template_arguments(self):
        assert types.result("::std::tuple<at::Tensor,::std::vector<at::Tensor>>") == "tuple2[Tensor, vector[Tensor]]"


def declaration(name, *parameters, schema="", result="at::Tensor"):
    """A C++ signature; each parameter is a type, with "=" at the end if it has a default."""
    listed = tuple(Parameter(cpp.removesuffix("="), f"p{i}", cpp.endswith("=")) for i, cpp in enumerate(parameters))
    schema = schema or f"{name}({', '.join(parameters)})"
    return Declaration(name, result, listed, schema, f"{name}_{len(parameters)}", "", None, "")


class TestOverloads:
    """The declarations that Cython sees; tests/cython/test_call_forms.py tests the calls."""

    def test_no_two_functions_share_a_cpp_name(self, surface):
        definitions = {(d.wrapper, d.definition) for d in [*surface.functions, *surface.methods]}
        names = Counter(wrapper for wrapper, _ in definitions)
        assert [name for name, count in names.items() if count > 1] == []

    @pytest.mark.parametrize("method", [False, True])
    def test_nothing_is_declared_twice(self, surface, method):
        seen = Counter()
        for overload in overloads(surface.methods if method else surface.functions, method=method):
            seen.update((overload.name, form) for form in overload.call_forms())
        assert [key for key, count in seen.items() if count > 1] == []

    def test_all_overloads_of_a_method_have_one_cpp_name(self, surface):
        """Cython uses the first overload's C++ name for all of them."""
        names = {}
        for overload in overloads(surface.methods, method=True):
            assert names.setdefault(overload.name, overload.cpp_name) == overload.cpp_name

    def test_what_is_left_to_cpp(self):
        (one,) = overloads([declaration("f", types.TENSOR, "at::IntArrayRef")], method=False)
        assert list(one.call_forms()) == [("CTensor&", OPEN)]

    def test_what_is_plain_is_called_directly(self):
        (one,) = overloads([declaration("f", types.TENSOR, "int64_t")], method=False)
        assert one.cpp_name is None
        assert list(one.call_forms()) == [("CTensor&", "int64_t")]

    def test_a_truth_value_is_told_from_a_number(self):
        (one,) = overloads([declaration("f", types.TENSOR, types.SCALAR)], method=False)
        assert [form[1] for form in one.call_forms()] == ["cbool", "int", "int64_t", OPEN]
        assert [form[0] for form in one.call_forms()] == ["CTensor&"] * 3 + ["CTensorBase&"]

    def test_a_method_that_could_not_tell_them_apart_is_not_declared(self):
        """Such as sort(stable) and sort(dim), because C++ receives a truth value as an int."""
        assert overloads([declaration("sort", "bool"), declaration("sort", "int64_t")], method=True) == []
        assert len(overloads([declaration("sort", "bool"), declaration("sort", "int64_t")], method=False)) == 1

    def test_different_results_stay_apart(self):
        """Such as those of max(t, dim) and max(t, other)."""
        along = declaration("max", types.TENSOR, "int64_t", result="::std::tuple<at::Tensor,at::Tensor>")
        other = declaration("max", types.TENSOR, types.TENSOR)
        listed = [form for overload in overloads([along, other], method=False) for form in overload.call_forms()]
        assert listed == [("CTensor&", "int64_t"), ("CTensor&", "CTensor&")]

    def test_of_two_that_look_alike_the_one_that_leans_less_on_defaults(self):
        long = declaration("f", types.TENSOR, "int64_t=", schema="long")
        short = declaration("f", types.TENSOR, schema="short")
        for order in ([long, short], [short, long]):
            (chosen,) = (o for o in overloads(order, method=False) if len(o.choices) == 1)
            assert [candidate.declaration for candidate in chosen.candidates] == [short]
        assert overloads([short, replace(short, schema="another")], method=False) == []


class TestCut:
    """The header, cut down to the functions that a module needs and their ATen headers."""

    TEXT = f"start\n{OPERATORS}\n// [add] ATen/ops/add_ops.h\nadd it\n\n// [sub] ATen/ops/sub_ops.h\nsub it\n"

    def test_what_is_named_stays(self):
        text = cut(self.TEXT, {"sub", "other"})
        assert "sub it" in text
        assert "#include <ATen/ops/sub_ops.h>" in text
        assert "add" not in text
        assert OPERATORS not in text

    def test_of_the_real_one(self):
        text = cut((INCLUDE / "interop/functions.h").read_text(), {"linear"})
        assert len(text) < 4000
        assert "ATen/ops/linear_ops.h" in text


@pytest.mark.long
class TestFiles:
    def test_line_one_has_the_command(self):
        for path in GENERATED:
            first = path.read_text().splitlines()[0]
            assert COMMAND in first, path
            assert torch.__version__ in first

    def test_they_are_what_the_generator_writes_now(self, tmp_path):
        """The generator does not rewrite files that are up to date."""
        generate(tmp_path / "pxd", tmp_path / "include", tmp_path / "stable", torch.__version__)
        for path in GENERATED:
            root, folder = (PXD, "pxd") if path.is_relative_to(PXD) else (INCLUDE, "include")
            assert (tmp_path / folder / path.relative_to(root)).read_text() == path.read_text(), path
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
        generate(tmp_path / "pxd", tmp_path / "include", tmp_path / "stable", torch.__version__)
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == before
