"""Finds out which functions of ATen a Python function calls, and with what: just as torch's own bindings decided."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.schema_check_mode import SchemaCheckMode


@dataclass
class Call:
    """One call of a function of ATen: which overload, and its arguments, without those that have their default."""

    overload: OpOverload
    args: tuple
    kwargs: dict[str, Any]
    result: Any = None
    error: BaseException | None = None

    def run(self) -> Any:
        return self.overload(*self.args, **self.kwargs)


@dataclass
class Captured:
    """What a Python function did."""

    calls: list[Call] = field(default_factory=list)
    result: Any = None
    error: Exception | None = None


# The stack of modes before dispatch takes three classes only. This one is meant for tests and adds nothing of its own.
class _Capture(SchemaCheckMode):
    """Sees calls before the dispatcher takes composite functions apart, as the bindings of Python make them."""

    def __init__(self, captured: Captured, execute: Callable[[Call], Any]):
        super().__init__()
        self._dispatch_key = torch._C.DispatchKey.PreDispatch
        self.captured = captured
        self.execute = execute

    def __torch_dispatch__(self, overload, types, args=(), kwargs=None):
        call = Call(overload, tuple(args), dict(kwargs or {}))
        self.captured.calls.append(call)
        # Without this, functions of ATen that have an implementation in Python as well would run that one.
        with torch._C._DisablePythonDispatcher():
            try:
                call.result = self.execute(call)
            except BaseException as error:
                call.error = error
                raise
        return call.result


def capture(function: Callable[[], Any], execute: Callable[[Call], Any] = Call.run) -> Captured:
    """Calls `function` and notes its calls of ATen. Each of them is made by `execute`."""
    captured = Captured()
    with torch.no_grad(), torch._C._EnablePythonDispatcher(), _Capture(captured, execute):
        try:
            captured.result = function()
        except Exception as error:
            captured.error = error
    return captured
