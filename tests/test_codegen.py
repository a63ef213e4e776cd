"""The generated declarations: complete, or left out for a reason; and nothing for C++ to choose among."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import interop
from interop import doctor
from interop.codegen import calls, types
from interop.codegen.surface import Declaration, Parameter, read
from interop.codegen.write import COMMAND, generate

PXD, INCLUDE = Path(interop.get_pxd_dir()), Path(interop.get_include())
GENERATED = (
    PXD / "torch/_tensor.pxd",
    PXD / "ATen/Functions.pxd",
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
        assert len(surface.left_out) < surface.schemas / 100

    def test_what_torch_has_by_hand_is_declared_by_hand(self, surface):
        text = "".join(path.read_text() for path in PXD.rglob("*.pxd"))
        for schema in surface.by_hand:
            name = re.match(r"(\w+)", schema)[1]
            assert name == "_backward" or re.search(rf"\b{name}\(", text), schema

    def test_doctor_prints_the_counts(self, surface, capsys):
        doctor.main([])
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


class TestOverloads:
    def test_no_two_functions_share_a_cpp_name(self, surface):
        names = Counter(declaration.wrapper for declaration in surface.functions)
        assert [name for name, count in names.items() if count > 1] == []

    def test_no_call_is_declared_twice(self, surface):
        for listed in (calls.function_calls(surface.functions), calls.method_calls(surface.methods)):
            seen = Counter((call.declaration.name, call.types) for call in listed)
            assert [key for key, count in seen.items() if count > 1] == []

    def test_methods_that_differ_in_numbers_alone(self):
        """As sort(stable) and sort(dim) do: of a truth value C++ sees an int."""
        stable = Declaration("sort", "Tensor", (Parameter("cbool", "stable", False),), "sort.stable")
        along = Declaration("sort", "Tensor", (Parameter("int64_t", "dim", False),), "sort")
        assert calls.method_calls([stable, along]) == []
        kinds = [call.types for call in calls.function_calls([stable, along])]
        assert kinds == [("cbool",), ("int64_t",), ("int",)]  # a C int is nearer to a truth value than to an int64_t

    def test_of_two_that_look_alike_the_one_that_leans_less_on_defaults(self):
        repeats = Declaration(
            "repeat_interleave",
            "Tensor",
            (Parameter("CTensor&", "repeats", False), Parameter("int64_t", "output_size", True, optional=True)),
            "repeat_interleave.Tensor",
        )
        times = Declaration(
            "repeat_interleave",
            "Tensor",
            (Parameter("CTensor&", "self", False), Parameter("int64_t", "repeats", False)),
            "repeat_interleave.self_int",
        )
        for order in ([repeats, times], [times, repeats]):
            chosen = [call for call in calls.function_calls(order) if len(call.types) == 2]
            assert [call.declaration for call in chosen] == [times]
        assert calls.function_calls([times, replace(times, schema="another")]) == []


class TestFiles:
    def test_line_one_has_the_command(self):
        for path in GENERATED:
            first = path.read_text().splitlines()[0]
            assert COMMAND in first, path
            assert torch.__version__ in first

    def test_they_are_what_the_generator_writes_now(self, tmp_path):
        generate(tmp_path / "pxd", tmp_path / "include", torch.__version__)
        for path in GENERATED:
            root, folder = (PXD, "pxd") if path.is_relative_to(PXD) else (INCLUDE, "include")
            assert (tmp_path / folder / path.relative_to(root)).read_text() == path.read_text(), path

    def test_unchanged_files_are_not_touched(self, tmp_path):
        generate(tmp_path / "pxd", tmp_path / "include", torch.__version__)
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
        generate(tmp_path / "pxd", tmp_path / "include", torch.__version__)
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == before
