"""The experiment class-members: what a tensor in a class keeps alive, and what is collected and copied."""

import pytest

from experiments import load
from experiments.harness import building
from interop.cli import CommandError

NAME = "class-members"

pytestmark = pytest.mark.slow
TYPED, CPP, VIEW, OBJECT, PYBIND11, PYTHON = range(6)


@pytest.fixture(scope="module")
def answers():
    """The answers by question, in the order of the ways."""
    building.build(NAME)
    found = load(NAME, "behaviour").behaviour()
    return {question: list(ways.values()) for question, ways in found.items()}


class TestBehaviour:
    def test_only_typed_members_check_what_they_get(self, answers):
        for question in ("takes None", "takes a list"):
            assert answers[question][OBJECT] == answers[question][PYTHON] == "yes"
            for way in (TYPED, CPP, VIEW, PYBIND11):
                assert answers[question][way].startswith("TypeError: ")

    @pytest.mark.parametrize(
        ("question", "of_the_view"),
        [
            ("gives back the same object", "no"),
            ("with its attributes, kept by nobody else", "no"),
            ("keeps the memory alive", "yes"),
            ("frees it at once at its end", "yes"),
            ("follows `t.data = ...`", "no"),
            (
                "gradients come back through it",
                "RuntimeError: argument 'tensor' must not require grad to be written to: autograd cannot see the "
                "write; share .detach(), share it under torch.no_grad(), or pass readonly=True to the function of "
                "interop that shares",
            ),
        ],
    )
    def test_all_keep_the_tensor_but_the_memoryview_its_memory(self, answers, question, of_the_view):
        expected = ["yes"] * 6
        expected[VIEW] = of_the_view
        assert answers[question] == expected

    def test_cycles_that_python_sees_are_collected(self, answers):
        assert answers["the collector knows the instance"] == ["yes", "no", "no", "yes", "no", "yes"]
        assert answers["`t.owner = instance`"] == [
            *("collected", "leaks", "at once"),
            *("collected", "leaks", "collected"),
        ]
        for way in (TYPED, OBJECT, PYTHON):
            assert answers["a hook of a leaf has the instance"][way] == "collected"
        for way in (CPP, PYBIND11):
            assert answers["a hook of a leaf has the instance"][way] == "leaks"

    def test_the_cure_frees_the_tensor(self, answers):
        assert answers["the same, after `instance.close()`"] == ["-", "at once", "-", "-", "at once", "-"]

    def test_what_can_be_pickled_without_a_line_of_code(self, answers):
        for question in ("`pickle`", "`copy.deepcopy`"):
            assert [answer.partition(":")[0] for answer in answers[question]] == [
                *("yes", "TypeError", "TypeError"),
                *("yes", "TypeError", "yes"),
            ]
        assert answers["`pickle`"][CPP] == "TypeError: self.t cannot be converted to a Python object for pickling"

    def test_reduce_makes_all_of_them_copyable(self, answers):
        for question in ("`pickle`", "`copy.deepcopy`", "`copy.copy`, memory shared"):
            assert answers[f"{question}, with `__reduce__`"] == ["yes"] * 6
        assert answers["a pickle of two still shares memory"] == ["yes", "yes", "no", "yes", "yes", "yes"]


class TestMeasures:
    def test_memory_is_that_of_the_instance_and_what_hangs_on_it(self):
        building.build(NAME)
        sizes = load(NAME, "memory").measure(200)
        # The instance contains the memoryview's slice, which has room for eight dimensions.
        assert sizes["sys.getsizeof"]["memoryview"] > 5 * sizes["sys.getsizeof"]["torch.Tensor"]
        own, shared = sizes["each of a tensor of its own"], sizes["all of one tensor"]
        for way, size in sizes["sys.getsizeof"].items():
            assert shared[way] >= size
            if way != "memoryview":  # its export of a tensor costs more than the tensor, which it does not keep
                assert own[way] > shared[way] + 100

    def test_the_check_finds_a_class_that_does_not_assign(self, monkeypatch):
        building.build(NAME)
        ways, measure = load(NAME, "ways"), load(NAME, "measure")
        wrong = type("Wrong", (ways.classes()[ways.PYTHON],), {"set": lambda self, t: None})
        monkeypatch.setattr(ways, "classes", lambda: {ways.PYTHON: wrong})
        with pytest.raises(CommandError, match=r"Python: after set\(\)"):
            measure.check()
