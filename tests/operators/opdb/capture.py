"""Records which ATen functions a Python function calls, and their arguments, as torch's own bindings decide."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.schema_check_mode import SchemaCheckMode


@dataclass
class Call:
    """One call of an ATen function: the overload, and the arguments that differ from their defaults."""

    overload: OpOverload
    args: tuple
    kwargs: dict[str, Any]
    result: Any = None
    error: BaseException | None = None

    def run(self) -> Any:
        return self.overload(*self.args, **self.kwargs)


@dataclass
class Captured:
    """A function's ATen calls and its outcome."""

    calls: list[Call] = field(default_factory=list)
    result: Any = None
    error: Exception | None = None


# The stack of pre-dispatch modes accepts three classes only. This one is meant for tests and adds nothing of its own.
class _Capture(SchemaCheckMode):
    """Sees calls as torch's Python bindings make them, before the dispatcher decomposes composite functions."""

    def __init__(self, captured: Captured, execute: Callable[[Call], Any]):
        super().__init__()
        self._dispatch_key = torch._C.DispatchKey.PreDispatch
        self.captured = captured
        self.execute = execute

    def __torch_dispatch__(self, overload, types, args=(), kwargs=None):
        call = Call(overload, tuple(args), dict(kwargs or {}))
        self.captured.calls.append(call)
        # Without this, ATen functions that also have an implementation in Python would run that one.
        with torch._C._DisablePythonDispatcher():
            try:
                call.result = self.execute(call)
            except BaseException as error:
                call.error = error
                raise
        return call.result


def capture(function: Callable[[], Any], execute: Callable[[Call], Any] = Call.run) -> Captured:
    """Calls `function` and records its ATen calls, each of which `execute` makes."""
    captured = Captured()
    with torch.no_grad(), torch._C._EnablePythonDispatcher(), _Capture(captured, execute):
        try:
            captured.result = function()
        except Exception as error:
            captured.error = error
    return captured
