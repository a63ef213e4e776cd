"""The experiment unpack: all ways read the same from a Python object, and a wrong mirror does not compile."""

import numpy as np
import pytest
import torch

import experiments
from experiments.harness import building
from interop.cli import CommandError

NAME = "unpack"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ways():
    building.build(NAME)
    return experiments.load(NAME, "ways")


def test_all_ways_agree(ways):
    assert ways.functions().keys() == {(what, way) for what in ways.OBJECTS for way in ways.WAYS}
    ways.check()


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        (("torch.Tensor", "header"), lambda x: x.numel() + 1),
        (("numpy.dtype", "mirror"), lambda x: float(x.itemsize)),
        (("complex", "function"), lambda x: x.imag),
        (("complex", "C++"), lambda x: abs(x.real)),
    ],
)
def test_the_check_finds_a_wrong_way(ways, monkeypatch, key, wrong):
    functions = ways.functions() | {key: wrong}
    monkeypatch.setattr(ways, "functions", lambda: functions)
    with pytest.raises(CommandError, match=f"{key[0]}, .* instead of "):
        ways.check()


@pytest.mark.parametrize(
    ("way", "of_another"), [("header", lambda a, b: b), ("function", lambda a, b: (a[0] + 8, b[1])), ("function", max)]
)
def test_the_check_finds_another_tensor(ways, monkeypatch, way, of_another):
    """The wrong ways give another tensor, another TensorImpl, and the field itself as a handle."""
    other = torch.ones(1)
    real = ways.identities

    def wrong(tensor):
        found = real(tensor)
        if of_another is max:
            return found | {way: found["mirror"]}
        return found | {way: of_another(found[way], real(other)[way])}

    monkeypatch.setattr(ways, "identities", wrong)
    with pytest.raises(CommandError, match="do not mean the same C\\+\\+ tensor"):
        ways.check()


def test_the_handle_keeps_nothing_alive(ways):
    """The handle is deleted: the tensor's use count stays the same."""
    x = torch.ones(3)
    for function in (ways.functions()["torch.Tensor", "function"], ways.identities):
        function(x)
    assert x._use_count() == torch.ones(3)._use_count()


def test_what_has_another_type_is_a_type_error(ways):
    wrong = {"torch.Tensor": np.ones(3), "numpy.dtype": np.float64, "complex": 1.5}
    for (what, way), function in ways.functions().items():
        for value in (wrong[what], None):
            if way != "attribute":
                with pytest.raises(TypeError):
                    function(value)


def test_the_layout_is_that_of_this_torch(ways):
    layout = ways.layout()
    assert layout["torch.Tensor"]["fields"][0] == ["cdata", 16, 8]
    assert layout["torch.Tensor"]["size"] == torch.Tensor.__basicsize__
    assert layout["complex"] == {"fields": [["cval.real", 16, 8], ["cval.imag", 24, 8]], "size": complex.__basicsize__}
    fields = {name: (offset, size) for name, offset, size in layout["numpy.dtype"]["fields"]}
    assert fields.keys() == {"type_num", "flags", "elsize", "alignment"}
    assert fields["elsize"][1] == 8


def test_a_mirror_of_an_older_release_does_not_compile(ways):
    """Those of this release do."""
    said = experiments.load(NAME, "measure").caught(lambda _: None)
    assert said.pop("as they are") == ""
    assert "torch.Tensor" in said.pop("torch.Tensor, as up to 2.9")
    assert "numpy.dtype" in said.pop("numpy.dtype, as in NumPy 1")
    assert not said
