"""Refuses scoped modes that would not do what they say."""

import re

from interop.codegen.select import read_source

_GUARD = re.compile(
    r"^(?P<indent>[ \t]+)(?:cdef[ \t]+)?(?P<module>\w+\.)?"
    r"(?P<kind>NoGradGuard|AutoGradMode|InferenceMode|AutoDispatchBelowAutograd|Launch|"
    r"DeviceGuard|StreamGuard|(?:Optional)?CUDA(?:Stream)?Guard)[ \t]+"
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


def refuse_idle_guards(source: str) -> None:
    """Raises SyntaxError for a guard that would not do what it says.

    One that is never assigned Cython leaves out without a word. In a generator or a coroutine it would last from the
    first step to the last, over whatever the caller does in between.
    """
    text = read_source(source)
    for guard in _GUARD.finditer(text):
        kind = guard["kind"]
        line = text.count("\n", 0, guard.start()) + 1
        where = (source, line, 1, guard[0])
        before = [block.end() for block in _NEXT_BLOCK.finditer(text, 0, guard.start())]
        after = _NEXT_BLOCK.search(text, guard.end())
        function = text[before[-1] if before else 0 : after.start() if after else None]
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
