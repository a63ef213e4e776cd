"""A plugin of pytest: the operators of torch_scatter are ours, under the Python code of the original.

Ours have no argument `out`. Here it gets what the original writes there, of a result of ours.
"""

import torch
from torch import Tensor

from experiments.harness.building import native
from experiments.ports.base import NAME

native(NAME, "scatter_cython")
torch.ops.load_library = lambda _: None  # of the original's C++, which is not compiled here

LIBRARY = torch.library.Library("torch_scatter", "DEF")
COMBINED = {
    "sum": torch.add,
    "mean": lambda _, result: result,
    "mul": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
}


def define(name: str, reduction: str = "") -> None:
    """Define an operator of torch_scatter. Those of an index in any order have a dim, and these and coo a size."""
    ours = getattr(torch.ops.ports_scatter, name)
    any_order, overwrites = name.startswith("scatter"), not reduction or name.endswith("csr")

    def called(src, index, dim, out, size):
        along = index.dim() - 1 if dim is None else dim
        size = size if out is None or overwrites else out.size(along)
        result = ours(src, index, *([dim] if any_order else []), *([] if overwrites else [size]))
        values, *places = result if isinstance(result, tuple) else (result,)
        if out is not None:
            values = values if overwrites else COMBINED[reduction](out, values)
            if places and not overwrites:  # a group without rows keeps what is there
                values = torch.where(places[0] == src.size(along), out, values)
            with torch.no_grad():  # the original's write is no part of the graph either
                values = out.copy_(values)
        return (values, *places) if places else values

    result = "(Tensor, Tensor)" if reduction in ("min", "max") else "Tensor"
    arguments = f"Tensor src, Tensor index, {'int dim, ' if any_order else ''}Tensor? out"
    # As in the original, the schema does not say that `out` is written to. So TorchScript must not drop such a call.
    LIBRARY.define(f"{name}({arguments}{'' if overwrites else ', int? size'}) -> {result}", "CONSERVATIVE")
    in_order = lambda src, index, out, size=None: called(src, index, None, out, size)  # noqa: E731
    LIBRARY.impl(name, called if any_order else in_order, "CompositeImplicitAutograd")


for kind, reductions in {"segment": ("sum", "mean", "min", "max"), "scatter": ("mul", "min", "max")}.items():
    for reduction in reductions:
        for end in ("_csr", "_coo") if kind == "segment" else ("",):
            define(f"{kind}_{reduction}{end}", reduction)
define("gather_csr")
define("gather_coo")
LIBRARY.define("cuda_version() -> int")
LIBRARY.impl("cuda_version", lambda: -1, "CompositeExplicitAutograd")

import torch_scatter  # noqa: E402  it needs the above

# These two are Python in the original, and operators here. They are compiled by torch.jit.script.


def scatter_sum(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """torch_scatter's function."""
    if out is not None:
        return out.add_(torch.ops.ports_scatter.scatter_sum(src, index, dim, out.size(dim)))
    return torch.ops.ports_scatter.scatter_sum(src, index, dim, dim_size)


def scatter_mean(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """torch_scatter's function."""
    if out is not None:
        return out.copy_(torch.ops.ports_scatter.scatter_mean(src, index, dim, out.size(dim)))
    return torch.ops.ports_scatter.scatter_mean(src, index, dim, dim_size)


for module in (torch_scatter, *(getattr(torch_scatter.composite, name) for name in ("logsumexp", "softmax", "std"))):
    for function in (scatter_sum, scatter_mean):
        if hasattr(module, function.__name__):
            setattr(module, function.__name__, function)
