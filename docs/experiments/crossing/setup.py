"""Compiles the functions of all kinds with the same flags; `harness/building.py` runs it."""

import importlib
import sys
from pathlib import Path

from setuptools import Extension as PlainExtension
from setuptools import setup
from torch.utils.cpp_extension import CppExtension

from experiments import load
from experiments.harness import building
from interop.build import BuildExtension, Extension, cythonize

FLAGS = load("crossing", "ways").FLAGS
# What Cython and cffi write goes where the objects go, not beside the sources.
generated = Path(sys.argv[sys.argv.index("--build-temp") + 1])


def nanobind() -> PlainExtension:
    """As the comment in its nb_combined.cpp says, for builds without CMake."""
    package = importlib.import_module("nanobind")
    folder = Path(package.__file__).parent
    return PlainExtension(
        "crossing_nanobind",
        ["crossing_nanobind.cpp", str(folder / "src" / "nb_combined.cpp")],
        include_dirs=[package.include_dir(), str(folder / "ext" / "robin_map" / "include")],
        define_macros=[("NDEBUG", None), ("NB_COMPACT_ASSERTIONS", None)],
        extra_compile_args=[*FLAGS, "-fvisibility=hidden", "-fno-strict-aliasing"],
    )


def tvm_ffi() -> PlainExtension:
    """With what ``tvm-ffi-config`` prints."""
    libinfo = importlib.import_module("tvm_ffi.libinfo")
    return PlainExtension(
        "crossing_tvm_ffi",
        ["crossing_tvm_ffi.cpp"],
        include_dirs=libinfo.include_paths(),
        library_dirs=[str(Path(libinfo.find_libtvm_ffi()).parent)],
        libraries=["tvm_ffi"],
        extra_compile_args=FLAGS,
    )


def cffi() -> PlainExtension:
    """A module that cffi generates from the declarations."""
    ffi = importlib.import_module("cffi").FFI()
    for name, count in {"one": 1, "three": 3, "eight": 8}.items():
        ffi.cdef(f"int64_t crossing_{name}({', '.join(['const void *', 'int64_t'] * count)});")
    ffi.set_source("crossing_cffi", '#include "crossing_c.h"', source_extension=".cpp")
    generated.mkdir(parents=True, exist_ok=True)
    source = generated / "crossing_cffi.cpp"
    ffi.emit_c_code(str(source))
    return PlainExtension(
        "crossing_cffi", [str(source), "crossing_c.cpp"], include_dirs=["."], extra_compile_args=FLAGS
    )


tools = {"nanobind": nanobind, "tvm_ffi": tvm_ffi, "cffi": cffi}
setup(
    name="crossing",
    ext_modules=[
        CppExtension("crossing_pybind11", ["crossing_pybind11.cpp"], extra_compile_args=FLAGS),
        CppExtension("crossing_torch_ops", ["crossing_torch_ops.cpp"], extra_compile_args=FLAGS),
        PlainExtension("crossing_c", ["crossing_c.cpp"], include_dirs=["."], extra_compile_args=FLAGS),
        *(extension() for package, extension in tools.items() if building.tool_version(package)),
        *cythonize(
            [
                Extension(name, [f"{name}.pyx"], extra_compile_args=FLAGS)
                for name in ("crossing_cython", "crossing_exchange")
            ],
            build_dir=str(generated),
        ),
    ],
    cmdclass={"build_ext": BuildExtension},
)
