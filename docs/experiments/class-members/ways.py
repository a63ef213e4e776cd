"""The classes, by what they keep their tensor in."""

from experiments.harness import building

NAME = "class-members"
TYPED, CPP, VIEW, OBJECT = "torch.Tensor", "at.Tensor", "memoryview", "object"
PYBIND11, PYTHON = "pybind11, at::Tensor", "Python"
WAYS = (TYPED, CPP, VIEW, OBJECT, PYBIND11, PYTHON)


def classes() -> dict[str, type]:
    """The class of each way. The compiled ones must have been built."""
    from .members_python import Member

    cython, cpp = building.native(NAME, "members"), building.native(NAME, "members_pybind11")
    found = (cython.TypedMember, cython.CppMember, cython.ViewMember, cython.ObjectMember, cpp.Member, Member)
    return dict(zip(WAYS, found, strict=True))


def picklable() -> dict[str, type]:
    """The same with a ``__reduce__`` written for them; Python's class needs none."""
    from .members_python import Member

    cython, cpp = building.native(NAME, "members"), building.native(NAME, "members_pybind11")
    found = (cython.PickledTyped, cython.PickledCpp, cython.PickledView, cython.PickledObject, cpp.Pickled, Member)
    return dict(zip(WAYS, found, strict=True))
