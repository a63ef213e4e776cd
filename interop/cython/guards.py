"""Refuses scoped modes that would not do what they say."""

import re

from interop.cython.declarations import read_source

_KINDS = (
    r"NoGradGuard|AutoGradMode|InferenceMode|AutoDispatchBelowAutograd|Launch|"
    r"DeviceGuard|StreamGuard|(?:Optional)?CUDA(?:Stream)?Guard"
)
_GUARD = re.compile(
    r"^(?P<indent>[ \t]+)(?:cdef[ \t]+)?(?P<module>\w+\.)?"
    rf"(?P<kind>{_KINDS})[ \t]+"
    r"(?P<names>\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*(?:=(?P<value>[^=].*))?(?:\#.*)?$",
    re.MULTILINE,
)
_ARGUMENT = {
    "AutoGradMode": "False",
    "Launch": "tensor",
    **dict.fromkeys(("DeviceGuard", "CUDAGuard", "OptionalCUDAGuard"), "tensor.device()"),
    **dict.fromkeys(("StreamGuard", "CUDAStreamGuard", "OptionalCUDAStreamGuard"), "stream"),
}
_NEXT_BLOCK = re.compile(
    r"^[ \t]*(?:async[ \t]+def|def|cpdef|class|cdef[ \t]+class)\b|^[ \t]*cdef\b.*\).*:[ \t]*$", re.MULTILINE
)
_CALL = rf"(?:\w+\.)?(?:{_KINDS})\([^()\n]*(?:\([^()\n]*\))?[^()\n]*\)"
# A statement of its own, or a part of an expression: both end with the statement.
_NOT_KEPT = re.compile(rf"^[ \t]+(?:[^#\"'\n]*[^\w.#\"'\n])?(?P<call>{_CALL})(?:\.\w|[ \t]*(?:#.*)?$)", re.MULTILINE)
_ASSIGNED = re.compile(r"=[ \t]*$")


def refuse_idle_guards(source: str) -> None:
    """Raises SyntaxError for a guard that would not do what it says.

    One that is never assigned Cython leaves out without a word. In a generator or a coroutine it would last from the
    first step to the last, over whatever the caller does in between.
    """
    text = read_source(source)
    for guard in _NOT_KEPT.finditer(text):
        before = text[guard.start() : guard.start("call")]
        if _ASSIGNED.search(before) and text[guard.end("call") : guard.end("call") + 1] != ".":
            continue
        written = guard["call"].partition("(")[0]
        raise SyntaxError(
            f"this {written} would end with its statement; write: cdef {written} guard = {guard['call']}",
            (source, text.count("\n", 0, guard.start("call")) + 1, 1, guard[0].strip()),
        )
    for guard in _GUARD.finditer(text):
        kind = guard["kind"]
        line = text.count("\n", 0, guard.start()) + 1
        where = (source, line, 1, guard[0])
        ends = [block.end() for block in _NEXT_BLOCK.finditer(text, 0, guard.start())]
        after = _NEXT_BLOCK.search(text, guard.end())
        function = text[ends[-1] if ends else 0 : after.start() if after else None]
        for name in re.findall(r"\w+", guard["names"]):
            # The last two: guards of devices and streams begin with these as well.
            begins = rf"(?<![\w.]){name}(?:[ \t]*=[^=]|\.reset_\w+\(|\.set_\w+\()"
            if guard["value"] is None and not re.search(begins, function):
                written = (guard["module"] or "") + kind
                raise SyntaxError(
                    f"{name!r} is declared but never assigned here, so this guard would do nothing; "
                    f"write: cdef {written} {name} = {written}({_ARGUMENT.get(kind, '')})",
                    where,
                )
        if re.search(r"\b(?:yield|await)\b", function):
            raise SyntaxError(f"a {kind} cannot stand in a generator or coroutine: its mode would leak out", where)
