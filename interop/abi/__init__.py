"""The ABI check: a compiled module loads only with the torch that it was compiled for.

Every module that says ``cimport torch`` imports ``interop.abi.torch_X_Y`` during its own import. The generated
declaration of ``torch.Tensor`` contains that name, and so does the bootstrap that `interop.build` adds to a module.
Only the name of the running torch resolves. Any other raises ImportError with both versions and the command that
rebuilds the module.

Inlined accessors read fields of TensorImpl at offsets that differ between minor releases of torch. A module compiled
for another release would not crash but read wrong values. See docs/design.md.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

import torch

from interop.abi.names import PREFIX, abi_name, abi_version

__all__ = ["MIRRORED", "NAME", "abi_name", "abi_version", "require"]

NAME = abi_name(torch.__version__)
"""The name of the running torch's ABI, such as ``torch_2_13``."""

MIRRORED = ("Tensor", "Generator", "Size", "Stream", "device", "dtype", "layout", "memory_format")
"""The Python types of torch whose C layout is declared for cimport."""


def require(name: str, module: str = "") -> None:
    """Raise ImportError unless `name` is the ABI of the running torch.

    Parameters
    ----------
    name
        The ABI that a module was compiled for, such as ``torch_2_13``.
    module
        The module's name, for the message.
    """
    if name == NAME:
        return
    subject = f"module {module!r}" if module else "this module"
    raise ImportError(
        f"{subject} was compiled for torch {abi_version(name)}, but torch {torch.__version__} is running. "
        "Rebuild it against the running torch, in its project: "
        "pip install --no-build-isolation --force-reinstall --no-deps .",
        name=module or None,
    )


class _Finder:
    """Finds ``interop.abi.torch_*``: resolves the running torch's name, and raises ImportError for any other."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        if parent != __name__ or not name.startswith(PREFIX):
            return None
        require(name)
        return importlib.util.spec_from_loader(fullname, _Loader())


class _Loader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return ModuleType(spec.name, "The mirrored Python types of the running torch.")

    def exec_module(self, module: ModuleType) -> None:
        for name in MIRRORED:
            setattr(module, name, getattr(torch, name))


sys.meta_path.append(_Finder)
