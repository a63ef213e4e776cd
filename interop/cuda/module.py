"""Modules of CUDA kernels compiled from a string, and the handles of their kernels, which Cython launches."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from interop.cuda import cache
from interop.cuda.nvrtc import Image, check_arch, compile_image, include_options, version
from interop.demangle import demangle, split_arguments

__all__ = ["Kernel", "Module", "compile"]

MAX_IMAGES = 64
"""Maximum number of compiled sources kept in memory, in addition to those of modules that are in use."""

# With these options, the result depends on files that may change.
_INCLUDES = ("-I", "--include-path", "-include", "--pre-include")

_lock = threading.RLock()  # reentrant: a destructor run by garbage collection may compile
_images: OrderedDict[str, Image] = OrderedDict()
_modules: weakref.WeakValueDictionary[str, "Module"] = weakref.WeakValueDictionary()


def compile(  # noqa: A001  the name that torch uses
    source: str,
    *,
    name: str = "kernel.cu",
    instances: Sequence[str] = (),
    options: Sequence[str] = (),
    arch: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> "Module":
    """Compile CUDA C++ with NVRTC. Nothing runs on a GPU, and with `arch` no GPU is needed.

    The same source with the same options is not compiled again. If its module is still in use, `compile` returns that
    module. Other results are cached in memory and on disk, in ``$INTEROP_CACHE_DIR``,
    ``$XDG_CACHE_HOME/torch-interop`` or ``~/.cache/torch-interop``. Threads that compile the same source at the same
    time may each do the work, and get the same module. Nothing is cached if an option names a folder or file to
    include, because its content may change.

    Parameters
    ----------
    source
        The source code with ``__global__`` functions. It can include ``<cstdint>`` and, if the package
        nvidia-cuda-runtime is installed, CUDA's headers such as ``<cuda_fp16.h>``. Do not declare kernels
        ``extern "C"``: the launch checks arguments by the types of the parameters, which would be lost.
    name
        The name of the source in error messages.
    instances
        Instances of template kernels to compile into the module, such as ``["axpy<float>", "axpy<double>"]``. Any other
        instance is compiled at its first use, into a module of its own with its own ``__device__`` variables.
    options
        NVRTC's options, such as ``["-DN=4", "--use_fast_math"]``.
    arch
        ``"sm_90"`` for machine code, ``"compute_80"`` for PTX, which GPUs of that capability and later ones can run.
        None means machine code for the current CUDA device.
    headers
        Further headers: a dict from names in ``#include`` to texts.

    Returns
    -------
    Module
        The module. Its kernels are ``module["name"]``.

    Raises
    ------
    CompileError
        If the source is wrong. The message has NVRTC's log, with the line and the reason.
    ImportError
        If NVRTC is not installed.
    RuntimeError
        If `arch` is None and there is no CUDA device, or NVRTC cannot compile for it.
    """
    if not isinstance(source, str):
        raise TypeError(f"source must be a str with CUDA C++, got {type(source).__name__}")
    if not isinstance(name, str) or not name:
        raise TypeError(f"name must be a str such as 'kernel.cu', got {name!r}")
    options, instances = _texts("options", options, "-DN=4"), _texts("instances", instances, "axpy<float>")
    for option in options:
        if option.startswith(("-arch", "--gpu-architecture")):
            raise ValueError(f"options must not select an architecture, got {option!r}; give arch='sm_90' instead")
    headers = {} if headers is None else dict(headers)
    for included, text in headers.items():
        if not isinstance(included, str) or not isinstance(text, str):
            raise TypeError(f"headers must be a dict from names to texts, got {included!r}: {text!r}")
    request = (source, name, check_arch(arch), options, tuple(sorted(headers.items())))
    return _module(request, tuple(sorted({_normal(one) for one in instances})))


def _texts(argument: str, values: Sequence[str], example: str) -> tuple[str, ...]:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{argument} must be a list of str such as [{example!r}], got {values!r}")
    return tuple(values)


def _normal(name: str) -> str:
    """A name without meaningless spaces, so that ``axpy< float >`` becomes ``axpy<float>``."""
    words = " ".join(name.split())
    for mark in "<>,*&()":
        words = words.replace(f" {mark}", mark).replace(f"{mark} ", mark)
    return words


def _module(request: tuple[Any, ...], instances: tuple[str, ...]) -> "Module":
    source, name, arch, options, headers = request
    if any(option.startswith(_INCLUDES) for option in options):
        return Module(compile_image(source, name, arch, options, dict(headers), instances), request)
    key = cache.key(request, instances, version(), include_options())
    with _lock:
        found = _modules.get(key)
        if found is not None:
            return found
        image = _images.get(key)
    if image is None:
        image = cache.read(key)
    if image is None:
        image = compile_image(source, name, arch, options, dict(headers), instances)
        cache.write(key, image)
    with _lock:
        _images[key] = image
        _images.move_to_end(key)
        while len(_images) > MAX_IMAGES:
            _images.popitem(last=False)
        # Another thread may have added the module first.
        return _modules.setdefault(key, Module(image, request))


class Module:
    """The result of `compile`: code for a GPU, and the names of the kernels in it.

    The driver loads the code when Cython code first makes a C++ ``Kernel`` from one of its handles. It unloads the
    code when these, the module and all `Kernel` handles of it are gone. Code that a CUDA graph has captured stays
    loaded.

    Attributes
    ----------
    name : str
        The argument `name` of `compile`.
    arch : str
        The architecture, ``"sm_90"`` or ``"compute_80"``.
    log : str
        The compiler's warnings.
    code : bytes
        The cubin, or PTX with a zero at its end.
    kernels : list of str
        The names of its kernels. Among template instances, only the requested ones.
    """

    def __init__(self, image: Image, request: tuple[Any, ...]):
        self.name, self.arch = request[1:3]
        self.log, self.code = image.log, image.code
        self._request = request
        # Symbol names, by each accepted name: the C++ name, the whole declaration, and the symbol name itself.
        self._entries = {instance: [entry] for instance, entry in image.instances.items()}
        for entry in image.entries:
            signature = demangle(entry)
            for known in {entry, *((_normal(_function(signature)), _normal(signature)) if signature else ())}:
                entries = self._entries.setdefault(known, [])
                if entry not in entries:
                    entries.append(entry)
        self.kernels = [self._name(entry) for entry in image.entries]

    def _name(self, entry: str) -> str:
        signature = demangle(entry)
        if not signature:
            return entry
        name = _function(signature)
        return name if len(self._entries[_normal(name)]) == 1 else signature

    def get_kernel(self, name: str) -> "Kernel":
        """The handle of the kernel `name`. An instance of a template, ``"axpy<float>"``, may be compiled now.

        Raises
        ------
        KeyError
            If there is no such kernel, or several.
        CompileError
            If the template has no such instance.
        """
        if not isinstance(name, str):
            raise TypeError(f"a kernel's name must be a str, got {name!r}")
        entries = self._entries.get(_normal(name), [])
        if len(entries) == 1:
            return Kernel(self, entries[0])
        if entries:
            raise KeyError(
                f"{self.name} has several kernels named {name!r}; give the whole declaration of one: "
                + ", ".join(repr(self._name(entry)) for entry in entries)
            )
        if "<" not in name:
            raise KeyError(
                f"{self.name} has no kernel {name!r}; it has {', '.join(map(repr, self.kernels)) or 'none'}; for a "
                "template kernel, name an instance, such as 'axpy<float>'"
            )
        return _module(self._request, (_normal(name),)).get_kernel(name)

    __getitem__ = get_kernel

    def __repr__(self) -> str:
        return f"<interop.cuda.Module {self.name!r} for {self.arch}: {', '.join(self.kernels) or 'no kernels'}>"


class Kernel:
    """The handle of a kernel. Cython code makes a C++ ``Kernel(handle)`` from it, and launches that without the GIL.

    Attributes
    ----------
    module : Module
        The module of the kernel, which the handle keeps alive.
    name : str
        Its C++ name, ``"axpy<float>"``.
    lowered_name : str
        Its symbol name.
    parameters : tuple of str or None
        The types of its parameters, ``"float const*"``; None for an ``extern "C"`` kernel.
    """

    def __init__(self, module: Module, lowered_name: str):
        signature = demangle(lowered_name)
        self.module, self.lowered_name = module, lowered_name
        self.name = _function(signature) if signature else lowered_name
        self.parameters = _parameters(signature) if signature else None

    def __repr__(self) -> str:
        parameters = "..." if self.parameters is None else ", ".join(self.parameters)
        return f"<interop.cuda.Kernel {self.name}({parameters}) of {self.module.name!r}>"


def _parameters_at(signature: str) -> int:
    """The position of the parenthesis that opens the parameter list."""
    depth = 0
    for at in range(len(signature) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(signature[at], 0)
        if signature[at] == "(" and depth == 0:
            return at
    raise ValueError(f"not a function: {signature!r}")


def _function(signature: str) -> str:
    """The name in a declaration. Only the declaration of a template's instance begins with its result type, void."""
    name = signature[: _parameters_at(signature)].replace("(anonymous namespace)::", "")
    return name.removeprefix("void ")


def _parameters(signature: str) -> tuple[str, ...]:
    """The types in the parameter list of a declaration."""
    types = tuple(split_arguments(signature[_parameters_at(signature) + 1 : -1]))
    return () if types in {("",), ("void",)} else types
