"""NVRTC, NVIDIA's run-time compiler: one call that compiles CUDA C++ to GPU code, with clear errors.

Nothing here needs a GPU or a driver.
"""

import functools
import re
import threading
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from interop.errors import Error

__all__ = ["CompileError", "Image", "check_arch", "compile_image", "include_options", "load", "version"]

OPTIONS_PAGE = "https://docs.nvidia.com/cuda/nvrtc/index.html#supported-compile-options"

# NVRTC has no headers of the C library, and kernels use these names as torch does.
STDINT = """\
#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
"""
HEADERS = types.MappingProxyType(
    {
        "stdint.h": STDINT,
        "cstdint": STDINT
        + "namespace std { using ::int8_t; using ::uint8_t; using ::int16_t; using ::uint16_t; using ::int32_t; "
        "using ::uint32_t; using ::int64_t; using ::uint64_t; using ::intptr_t; using ::uintptr_t; }\n",
    }
)
"""Headers that every source can include. NVRTC lacks them, and kernels often need them."""


class CompileError(Error, RuntimeError):
    """NVRTC rejects the CUDA C++. The message has NVRTC's log, which quotes the wrong line of the source.

    Attributes
    ----------
    log : str
        NVRTC's log alone.
    arch : str
        The target architecture.
    options : tuple of str
        The options of the compilation.
    """

    log = ""
    arch = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Image:
    """NVRTC's output for a source."""

    code: bytes
    """A cubin, or zero-terminated PTX."""
    entries: tuple[str, ...]
    """The mangled names of its kernels."""
    instances: Mapping[str, str] = field(default_factory=dict)
    """The mangled names of the requested template instances."""
    log: str = ""
    """Warnings."""


@functools.cache
def load() -> Any:
    """The module `cuda.bindings.nvrtc`, after a check that its library loads; ImportError says how to install it."""
    major = int((torch.version.cuda or "13").partition(".")[0])
    # From CUDA 13 on, the wheels have no major version in their names.
    suffix = f"-cu{major}" if major < 13 else ""
    install = (
        f"Run: pip install 'cuda-bindings=={major}.*' 'nvidia-cuda-nvrtc{suffix}=={major}.*' "
        f"'nvidia-cuda-runtime{suffix}=={major}.*' (the last has cuda_fp16.h and other headers)"
    )
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise ImportError(
            f"interop.cuda.compile needs NVRTC through the package cuda-bindings ({error}). {install}", name="cuda"
        ) from error
    try:
        nvrtc.nvrtcVersion()
    except (RuntimeError, OSError) as error:  # from cuda.pathfinder, or from older bindings
        what = str(error).strip().partition("\n")[0]
        raise ImportError(
            f"interop.cuda.compile needs the library libnvrtc, which does not load ({what}). {install}", name="cuda"
        ) from error
    return nvrtc


def version() -> str:
    """The version of NVRTC, such as ``"13.0"``."""
    return "{}.{}".format(*_call("nvrtcVersion"))


def supported() -> list[int]:
    """The compute capabilities that NVRTC knows, 90 for 9.0."""
    return list(_call("nvrtcGetSupportedArchs")[0])


def check_arch(arch: str | None) -> str:
    """`arch`, if NVRTC knows it; for None, the architecture of the current CUDA device."""
    known = supported()
    if arch is None:
        return _arch_of_device(known)
    if not isinstance(arch, str):
        raise TypeError(f"arch must be a str such as 'sm_90' or 'compute_80', or None, got {arch!r}")
    parts = re.fullmatch(r"(sm|compute)_(\d+)[af]?", arch)
    if not parts or int(parts[2]) not in known:
        raise ValueError(
            f"arch must be sm_N (machine code for that capability) or compute_N (PTX, which newer GPUs can run too), "
            f"where NVRTC {version()} knows N = {', '.join(map(str, known))}; got {arch!r}"
        )
    return arch


def _arch_of_device(known: list[int]) -> str:
    if not torch.cuda.is_available():
        raise RuntimeError(
            "there is no CUDA device to compile for; name the architecture, such as arch='sm_90' or arch='compute_80'"
        )
    major, minor = torch.cuda.get_device_capability()
    capability = 10 * major + minor
    if capability in known:
        return f"sm_{capability}"
    older = [one for one in known if one < capability]
    if not older:
        raise RuntimeError(
            f"NVRTC {version()} does not compile for this GPU, {torch.cuda.get_device_name()}, of capability "
            f"{major}.{minor}; the oldest supported is {known[0] // 10}.{known[0] % 10}. Use a torch for an older "
            "CUDA, with its NVRTC"
        )
    return f"compute_{older[-1]}"  # the driver knows its GPU, and compiles the PTX


def include_options() -> tuple[str, ...]:
    """Options with which NVRTC finds CUDA's own headers (cuda_fp16.h, ...) and libcu++, if they are installed."""
    with _searching:
        return _include_options()


_searching = threading.Lock()
"""pathfinder starts processes, with a time limit that many of them at once can exceed."""


@functools.cache
def _include_options() -> tuple[str, ...]:
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return ()
    found = (find_nvidia_header_directory(name) for name in ("cudart", "cccl"))
    return tuple(dict.fromkeys(f"-I{folder}" for folder in found if folder))


def compile_image(
    source: str, name: str, arch: str, options: Sequence[str], headers: Mapping[str, str], instances: Sequence[str]
) -> Image:
    """Compile `source`, with code for the template instances (``"axpy<float>"``) in `instances`."""
    headers = {**HEADERS, **headers}
    (program,) = _call(
        "nvrtcCreateProgram",
        source.encode(),
        name.encode(),
        len(headers),
        [text.encode() for text in headers.values()],
        [included.encode() for included in headers],
    )
    try:
        for instance in instances:
            _call("nvrtcAddNameExpression", program, instance.encode())
        arguments = [f"-arch={arch}", *options, *include_options()]
        nvrtc = load()
        (result,) = nvrtc.nvrtcCompileProgram(program, len(arguments), [option.encode() for option in arguments])
        log = _text(program, "ProgramLog").decode(errors="replace").strip("\0 \n")
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise _compile_error(result, log, name, arch, options, instances)
        ptx = _text(program, "PTX")  # also present for machine code
        code = ptx if arch.startswith("compute") else _text(program, "CUBIN")
        if not code:
            raise _compile_error(
                result, "these options produce no code that can be loaded", name, arch, options, instances
            )
        return Image(
            code,
            tuple(re.findall(r"\.entry\s+([\w$]+)", ptx.decode(errors="replace"))),
            {one: _call("nvrtcGetLoweredName", program, one.encode())[0].decode() for one in instances},
            log,
        )
    finally:
        load().nvrtcDestroyProgram(program)


def _compile_error(
    result: Any, log: str, name: str, arch: str, options: Sequence[str], instances: Sequence[str]
) -> CompileError:
    what = f"{name}, with the instances {', '.join(instances)}," if instances else name
    given = " ".join(options) or "none"
    lines = [f"{what} does not compile for {arch} (NVRTC {version()}, options: {given}):", log or result.name]
    if result == load().nvrtcResult.NVRTC_ERROR_INVALID_OPTION:
        lines.append(f"NVRTC's options are listed at {OPTIONS_PAGE}; it accepts no other options of nvcc")
    missing = re.search(r'could not open source file "([^"]+)"|cannot open source file "([^"]+)"', log)
    if missing:
        lines.append(
            f"NVRTC has no header {missing[1] or missing[2]!r}: give its text in headers={{...}}, or its folder in an "
            "option -I...; CUDA's own headers come with the package nvidia-cuda-runtime, libcu++ with nvidia-cuda-cccl"
        )
    error = CompileError("\n".join(line for line in lines if line))
    error.log, error.arch, error.options = log, arch, tuple(options)
    return error


def _text(program: Any, what: str) -> bytes:
    """One of the program's outputs. NVRTC reports its size first."""
    (size,) = _call(f"nvrtcGet{what}Size", program)
    buffer = bytearray(size)
    _call(f"nvrtcGet{what}", program, buffer)
    return bytes(buffer)


def _call(name: str, *arguments: Any) -> tuple[Any, ...]:
    """Call a function of NVRTC that is not expected to fail; return its results after the result code."""
    nvrtc = load()
    result, *values = getattr(nvrtc, name)(*arguments)
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"{name} of NVRTC failed: {result.name}")
    return tuple(values)
