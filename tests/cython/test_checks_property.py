"""Sources with guards and names in many forms: the checks judge them by Cython's grammar, not by their appearance."""

import re
from pathlib import Path

import pytest
from Cython import Utils
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interop.build import cythonize

pytestmark = pytest.mark.extended

# All words of all sources, so that the declarations are selected only once.
HEAD = "# torch NoGradGuard interop guards DeviceGuard sqare square ATen wrap\ncimport ATen as at\n"
CIMPORTS = (  # cimports, and the guard's name after each
    ("cimport torch", "torch.NoGradGuard"),
    ("cimport torch as th", "th.NoGradGuard"),
    ("import torch\ncimport torch", "torch.NoGradGuard"),
    ("from torch cimport NoGradGuard", "NoGradGuard"),
    ("from torch cimport NoGradGuard as Off", "Off"),
    ("from torch cimport (\n    NoGradGuard as Off,  # yield\n)", "Off"),
    ("from torch cimport *", "NoGradGuard"),
    ("from interop.guards cimport NoGradGuard as _off", "_off"),
    ("cimport interop.guards as modes", "modes.NoGradGuard"),
    ("cimport interop.guards", "interop.guards.NoGradGuard"),
    ("cimport torch\nctypedef torch.NoGradGuard Mode", "Mode"),
)
# Statements that the checks ignore. {G} is the guard's class, {n} a name that is used once.
NOISE = (
    "# these rows yield the answer; {G}() at.sqare",
    '"""\n{G}()\nyield at.sqare\n"""',
    "'cdef {G} x'; \"await {G}()\"",
    "y = '''{G}()\n  {G}().a' + at.sqare(y) '''",
    'y = r\'\\n\'; y = "{G}() \\" at.sqare"',
    "y = (  # {G}()\n    1,\n  'yield',\n)",
    "y = 1 + \\\n  2  # yield",
    "y = [i for i in range(3)]",
    "def {n}(at):\n    yield at.sqare",
    "def {n}():\n    cdef {G} own = {G}()\n    return 1",
    "class {n}:\n    def method(self):\n        yield 1",
    "{n} = lambda at: at.sqare",
    "{n} = (i for i in range(3))",
    "if y:\n    pass\nelse:\n    with nogil:\n        pass",
    "try:\n    y = 2\nfinally:\n    y = None",
)
# Valid guards. In a generator or coroutine, the checks reject them, in the line where the class first appears.
KEPT = (
    "cdef {G} {n} = {G}()",
    "cdef {G} {n}\n{n} = {G}()",
    "cdef {G} {n}\nif y:\n    while y:\n        {n} = {G}()",
    "cdef {G} {n}\nwith nogil:\n    {n} = {G}()  # yield",
    "cdef:\n    int {n}i\n    {G} {n}\n{n}i = 1; {n} = {G}()",
    "cdef {G} \\\n    {n} = \\\n    {G}()",
    "cdef {G} {n} = (\n    {G}(\n    )\n)",
    "cdef {G} {n}, {n}b\n{n} = {G}()\n{n}b = {G}()",
    "{n} = {G}()",
)
# Reasons for rejection, and statements with a mark in the rejected line.
REFUSED = (
    ("idle", "cdef {G} {n}  #!"),
    ("idle", "cdef:\n    int {n}i = 1\n    {G} {n}  #!"),
    ("idle", "cdef {G} {n}, {n}b  #!\n{n} = {G}()"),
    ("idle", "cdef {G} {n}  #!\n'''\n{n} = {G}()\n'''"),
    ("idle", "cdef {G} {n}  #! {n} = {G}()\ndef {n}f():\n    {n} = 1"),
    ("lost", "{G}()  #!"),
    ("lost", "if y: {G}()  #!"),
    ("lost", "with {G}():  #!\n    pass"),
    ("lost", "y = [{G}()]  #!"),
    ("unknown", "y = at.sqare(1)  #!"),
    ("unknown", "y = 'at.square', at.sqare  #!"),
    ("unknown", "cdef at.sqare {n}  #!"),
    ("unknown", "{n} = lambda: at.sqare  #!"),
    ("unknown", "def {n}():\n    return [at.sqare for i in range(3)]  #!"),
    ("unknown", "y = (at\n     .sqare)  #!"),
)
STEPS = {
    "generator": ("yield", "y = yield 1", "if y:\n    yield from ()", "y = (yield), 2"),
    "coroutine": ("await y", "async with y:\n    pass", "async for i in y:\n    pass", "y = 1, await y"),
}
HEADS = {
    "function": "def {n}(y):",
    "generator": "def {n}(y):",
    "coroutine": "async def {n}(y):",
    "method": "class C{n}:\n    def {n}(self, y):",
    "method of a cdef class": "cdef class C{n}:\n    cdef int {n}(self, y) except -1:",
}
MESSAGES = {
    "idle": "is declared but never assigned here",
    "lost": "would end with its statement",
    "unknown": "ATen has no 'sqare'; did you mean at.square?",
    "generator": "cannot be used in a generator or coroutine",
}


def is_closure(statement):
    """Whether a statement contains a closure, which no cdef function may have."""
    return re.search(r"\bdef \{|\blambda|\bclass|= \(i for", statement)


@st.composite
def functions(draw, name, guard):
    """The lines of a function, and its rejections: the line, counted from 0, and the reason."""
    kind = draw(st.sampled_from(sorted(HEADS)))
    lines = HEADS[kind].format(n=name).splitlines()
    indent = " " * 4 * len(lines)
    refused = []
    step = draw(st.integers(0, 3))
    for number in range(4):
        name_of = f"{name}_{number}"
        what, text = draw(
            st.sampled_from([*[(None, one) for one in NOISE], *[("kept", one) for one in KEPT], *REFUSED])
        )
        if is_closure(text) and kind == "method of a cdef class":
            what, text = None, "y = 1"
        written = text.split("\n")
        if what in MESSAGES:
            refused.append((len(lines) + next(i for i, line in enumerate(written) if "#!" in line), what))
        if what in ("kept", "idle", "lost") and kind in STEPS:
            refused.append((len(lines) + next(i for i, line in enumerate(written) if "{G}" in line), "generator"))
        lines += [indent + line.format(G=guard, n=name_of) for line in written]
        if number == step and kind in STEPS:
            lines += [indent + line for line in draw(st.sampled_from(STEPS[kind])).splitlines()]
    return [*lines, f"{indent}return 1"], refused


@st.composite
def sources(draw):
    """A source, and the line and the reason of its first rejection, or None."""
    cimport, guard = draw(st.sampled_from(CIMPORTS))
    lines = [*HEAD.splitlines(), *cimport.splitlines()]
    refused = []
    for name in "fgh"[: draw(st.integers(1, 3))]:
        more, marks = draw(functions(name, guard))
        refused += [(len(lines) + line, what) for line, what in marks]
        lines += more
    # Of two rejections in one line, that of the statement comes first.
    return "\n".join([*lines, ""]), min(refused, key=lambda mark: (mark[0], mark[1] == "generator"), default=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("checks")


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(source=sources())
def test_the_first_that_is_refused(folder, source):
    text, first = source
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("m.pyx").write_text(text)
        Utils.clear_function_caches()
        if first is None:
            cythonize("m.pyx", force=True, quiet=True)
            return
        with pytest.raises(SyntaxError) as raised:
            cythonize("m.pyx", force=True, quiet=True)
    line, what = first
    assert MESSAGES[what] in raised.value.msg
    assert raised.value.lineno == line + 1
