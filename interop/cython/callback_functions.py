"""Reject functions that torch cannot call, above all functions that need the GIL.

A parameter of a template or a macro accepts any argument, so Cython does not reject them.
"""

from collections.abc import Callable, Iterator
from typing import Any

from Cython.Compiler.Errors import error
from Cython.Compiler.PyrexTypes import error_type

from interop.cython.tree import Position

__all__ = ["check_functions"]

# The position of the first argument that is a function, and a description of it.
_TAKE_FUNCTIONS: dict[tuple[str, str], tuple[int | None, str]] = {
    ("torch.library", "impl"): (2, "kernel"),
    ("torch.library", "register_autograd"): (1, "function of register_autograd"),
    ("torch.library", "register_vmap"): (1, "rule for vmap"),
    ("torch.autograd", "define"): (1, "forward, backward or jvp function"),
    ("interop.elementwise", "kernel"): (0, "function of kernel()"),
    ("interop.dispatch", "dispatch"): (2, "function of dispatch()"),
    ("interop.dispatch", "dispatch2d"): (2, "function of dispatch2d()"),
    ("interop.dispatch", "dispatch_part"): (2, "function of dispatch_part()"),
    ("interop.instantiate", "instantiate"): (2, "function of instantiate()"),
    ("interop.instantiate", "instantiate2d"): (2, "function of instantiate2d()"),
    ("interop.instantiate", "instantiate_part"): (2, "function of instantiate_part()"),
    ("interop.instantiate", "instantiate_with"): (4, "function of instantiate_with()"),
    ("interop.instantiate", "instantiate2d_with"): (4, "function of instantiate2d_with()"),
    ("interop.instantiate", "instantiate_part_with"): (4, "function of instantiate_part_with()"),
}
_LOOP = "char** data, const int64_t* strides, int64_t n"
_LOOP2D = f"{_LOOP}, int64_t m"
_PART = "int64_t begin, int64_t end"
# The parameters before the last, which is a pointer to the element.
_DISPATCHED = {"dispatch": _LOOP, "dispatch2d": _LOOP2D, "dispatch_part": _PART}
# All parameters of the function that C++ instantiates.
_INSTANTIATED = {
    "instantiate": f"{_LOOP}, any_t* of",
    "instantiate2d": f"{_LOOP2D}, any_t* of",
    "instantiate_part": f"{_PART}, any_t* of",
    "instantiate_with": f"{_LOOP}, constant_t which, any_t* of",
    "instantiate2d_with": f"{_LOOP2D}, constant_t which, any_t* of",
    "instantiate_part_with": f"{_PART}, constant_t which, any_t* of",
}


def check_functions(original: Callable[..., Any]) -> Callable[..., Any]:
    """The `SimpleCallNode.analyse_c_function_call` that replaces `original`.

    A visit of the analysed tree would be too late. If the parameter is a pointer to a `nogil` function, Cython has
    already reported that no overload fits, without the reason.
    """

    def analyse_c_function_call(node: Any, env: Any) -> None:
        unfit = list(_unfit_functions(node))
        for position, message in unfit:
            error(position, message)
        if not unfit:
            original(node, env)
            return
        # Skip the original, which would add Cython's own message.
        declared = node.function.entry.all_alternatives()
        node.type = declared[0].type.return_type if len(declared) == 1 else error_type
        node.result_code = "<error>"

    return analyse_c_function_call


def _unfit_functions(node: Any) -> Iterator[tuple[Position, str]]:
    """The position of each function argument that torch cannot call, and the message about it."""
    entry = getattr(node.function, "entry", None)
    if not entry or not entry.type.is_cfunction:
        return
    anywhere: tuple[int | None, str] = (None, "function that torch calls")
    first, what = _TAKE_FUNCTIONS.get((_module_of(entry), entry.name), anywhere)
    for index, argument in enumerate(node.args or ()):
        kind = argument.type.base_type if argument.type.is_ptr else argument.type
        if not (kind.is_cfunction or kind.is_pyobject):
            continue
        if not (index >= first if first is not None else _takes_nogil(entry, index)):
            continue
        if kind.is_pyobject and _takes_objects(entry, index):
            continue
        if kind.is_pyobject:
            yield argument.pos, f"a {what} must be a cdef function, but this is a Python object"
        elif not kind.nogil and not kind.with_gil:
            yield argument.pos, "torch calls this function without the GIL; declare it `nogil`, or `with gil`"
        elif first is None and (_is_for_a_dtype(kind) or _is_template(kind)):
            yield argument.pos, f"the last parameter of a {what} must be a void*{_other(kind)}"
        elif what.startswith("function of instantiate") and not _fits_template(entry.name, kind):
            wanted = f"the parameters ({_INSTANTIATED[entry.name]}), with these types and the name `of`"
            yield argument.pos, f"a {what} must have {wanted}{_other(kind)}"
        elif what.startswith("function of dispatch") and _is_template(kind):
            yield argument.pos, f"a {what} must be a specialisation for one type{_other(kind)}"
        elif what.startswith("function of dispatch") and len(kind.args) != _DISPATCHED[entry.name].count(",") + 2:
            wanted = f"the parameters ({_DISPATCHED[entry.name]}, floating* _)"
            yield argument.pos, f"a {what} must have {wanted}{_other(kind)}"
        elif what == "function of kernel()" and (kind.exception_check or kind.exception_value is not None):
            yield argument.pos, f"a {what} must be noexcept: {_noexcept(kind)}"


def _is_for_a_dtype(kind: Any) -> bool:
    """Whether this is a specialisation that dispatch() can choose."""
    last = kind.args[-1].type if kind.args else None
    return last is not None and last.is_ptr and last.base_type.is_numeric and bool(_other(kind))


def _is_template(kind: Any) -> bool:
    """Whether C++ instantiates this function for each dtype."""
    return bool(kind.args) and _in_cpp(kind.args[-1]) == "auto *"


def _fits_template(name: str, kind: Any) -> bool:
    """Whether a function has the parameters that `name` of interop.instantiate calls it with."""
    parameters = _INSTANTIATED[name].split(", ")
    constants = [index for index, argument in enumerate(kind.args) if _in_cpp(argument) == "auto"]
    return (
        len(kind.args) == len(parameters)
        and constants == [index for index, text in enumerate(parameters) if text.startswith("constant_t")]
        and _is_template(kind)
        and kind.args[-1].name == "of"
    )


def _in_cpp(argument: Any) -> str:
    """The type of a parameter in C++."""
    return str(argument.type.empty_declaration_code())


def _other(kind: Any) -> str:
    """Advice: the functions that accept this function, which is for one dtype or a template."""
    if _is_template(kind):
        fitting = [name for name in _INSTANTIATED if _fits_template(name, kind)]
    else:
        fitting = [name for name, parameters in _DISPATCHED.items() if parameters.count(",") + 2 == len(kind.args)]
    return "".join(f"; for this one use {name}()" for name in fitting)


def _module_of(entry: Any) -> str:
    """The module that declares a function, or a method's class."""
    scope = entry.scope
    while scope is not None and not scope.is_module_scope:
        scope = scope.outer_scope
    return str(scope.qualified_name) if scope is not None else ""


def _takes_nogil(entry: Any, index: int) -> bool:
    """Whether the parameter at `index` is a pointer to a `nogil` function, in all overloads that have it."""
    kinds = [one.type.args[index].type for one in entry.all_alternatives() if index < len(one.type.args)]
    return bool(kinds) and all(kind.is_ptr and kind.base_type.is_cfunction and kind.base_type.nogil for kind in kinds)


def _takes_objects(entry: Any, index: int) -> bool:
    """Whether the parameter at `index` is a Python object, in any overload."""
    return any(one.type.args[index].type.is_pyobject for one in entry.all_alternatives() if index < len(one.type.args))


def _noexcept(kind: Any) -> str:
    """A valid declaration of a function of this type."""
    name = kind.entry.name if kind.entry else "f"
    parameters = ", ".join(f"{argument.type} {argument.name}" for argument in kind.args)
    return f"cdef {kind.return_type} {name}({parameters}) noexcept nogil"
