"""Writes a Cython function for each shape, compiles them in several modules, and finds those that do not compile."""

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Container, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from torch.utils import cpp_extension

from interop.paths import get_stable_library
from opdb import STABLE
from opdb.shapes import Shape

CHUNK = 200  # functions in a module

HEADER = """\
# distutils: language = c++
cimport ATen as at
cimport interop
cimport torch
from interop cimport BoolArray2, BoolArray3, BoolArray4, OptionalTensorList
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef list tensors_of(vector[at.Tensor] parts):
    return [torch.wrap(parts[i]) for i in range(parts.size())]


cdef object number_of(at.Scalar value):
    return torch.wrap(at.scalar_tensor(value, at.TensorOptions(value.type()))).item()
"""

# How each kind of argument is made from the value `{value}`. A kind that is not here is written as in WRITTEN.
VARIABLES = {
    "tensor": "cdef at.Tensor {name} = torch.unpack({value})",
    "cbool": "cdef cbool {name} = {value}",
    "int64_t": "cdef int64_t {name} = {value}",
    "double": "cdef double {name} = {value}",
    "double complex": "cdef double complex {name} = {value}",
    "object": "cdef object {name} = {value}",
    "bytes": "cdef bytes {name} = {value}",
    "dtype": "cdef at.ScalarType {name} = <at.ScalarType><int>{value}",
    "device": "cdef at.Device {name} = at.Device(<string>{value})",
    "ints": "cdef vector[int64_t] {name} = {value}",
    "doubles": "cdef vector[double] {name} = {value}",
    "tensors": "cdef vector[at.Tensor] {name}\n    for item in {value}:\n        {name}.push_back(torch.unpack(item))",
    "optional tensors": "cdef OptionalTensorList {name}\n"
    "    for item in {value}:\n"
    "        {name}.push_back(at.Tensor() if item is None else torch.unpack(item))",
} | {
    f"bools{length}": f"cdef BoolArray{length} {{name}}\n"
    f"    for i in range({length}):\n"
    "        {name}[i] = {value}[i]"
    for length in (2, 3, 4)
}
WRITTEN = {"None": "None", "options": "at.TensorOptions()"}

# Kinds of arguments that a block without the GIL cannot use.
PYTHON = {"object", "bytes"}

# The Cython type of each result in a schema, and how it becomes a Python object.
RESULTS = {
    "Tensor": ("at.Tensor", "torch.wrap({})"),
    "List[Tensor]": ("vector[at.Tensor]", "tensors_of({})"),
    "number": ("at.Scalar", "number_of({})"),
    "bool": ("cbool", "{}"),
    "int": ("int64_t", "{}"),
    "float": ("double", "{}"),
}


def function(shape: Shape, name: str) -> str:
    """The source of a function `name` that makes the call `shape` with a list of values."""
    lines = [f"def {name}(list values):  # {shape.overload}"]
    passed = []
    for i, kind in enumerate(shape.kinds):
        if kind in WRITTEN:
            passed.append(WRITTEN[kind])
        else:
            lines.append(f"    {VARIABLES[kind].format(name=f'a{i}', value=f'values[{i}]')}")
            passed.append(f"a{i}")
    target = f"at.{shape.name}" if shape.receiver is None else f"{passed.pop(shape.receiver)}.{shape.name}"
    call = f"{target}({', '.join(passed)})"
    if shape.returns:
        kind, converted = _result(shape.returns)
        lines.append(f"    cdef {kind} result")
        call = f"result = {call}"
    if PYTHON & set(shape.kinds):
        lines.append(f"    {call}")
    else:
        lines += ["    with nogil:", f"        {call}"]
    if shape.returns:
        lines.append(f"    return {converted}")
    return "\n".join(lines) + "\n"


def _result(returns: tuple[str, ...]) -> tuple[str, str]:
    if len(returns) == 1:
        kind, converted = RESULTS[returns[0]]
        return kind, converted.format("result")
    kinds = ", ".join(RESULTS[part][0] for part in returns)
    parts = ", ".join(RESULTS[part][1].format(f"interop.get{i}(result)") for i, part in enumerate(returns))
    return f"interop.tuple{len(returns)}[{kinds}]", f"({parts})"


class Modules:
    """The compiled functions of some shapes, and the compiler's message for each shape that does not compile."""

    def __init__(self, folder: Path, shapes: Iterable[Shape], fingerprint: str, log: Callable[[str], None] = print):
        self.functions: dict[str, Callable] = {}
        self.refused: dict[str, str] = {}
        ordered = sorted(shapes, key=lambda shape: shape.key)
        chunks = [ordered[i : i + CHUNK] for i in range(0, len(ordered), CHUNK)]
        modules = [_Module(folder / f"operators_{i}", chunk, fingerprint) for i, chunk in enumerate(chunks)]
        outdated = [module for module in modules if not module.is_built()]
        if outdated:
            log(f"compiling {len(outdated)} modules of {len(modules)}, for {len(ordered)} shapes of calls")
            # Each build is a process of its own, so threads are enough to wait for them.
            with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
                for module in pool.map(_Module.build, outdated):
                    log(f"{module.name}: {len(module.shapes)} functions, {len(module.refused)} of them refused")
        for module in modules:
            module.load(self)


class _Module:
    def __init__(self, folder: Path, shapes: list[Shape], fingerprint: str):
        self.folder = folder
        self.name = folder.name
        self.shapes = shapes
        self.refused: dict[str, str] = {}
        self.flags: list[str] = []
        self.stamp = folder / "built.json"
        self.wanted = [fingerprint, hashlib.sha256(self._text(()).encode()).hexdigest()]
        self.library = folder / f"{self.name}{sysconfig.get_config_var('EXT_SUFFIX')}"

    def is_built(self) -> bool:
        try:
            record = json.loads(self.stamp.read_text())
        except (OSError, ValueError):
            return False
        self.refused = record["refused"]
        return record["wanted"] == self.wanted and self.library.exists()

    def build(self) -> "_Module":
        """Translates and compiles, and repeats this without the functions that a compiler rejected."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.refused = {}
        self.stamp.unlink(missing_ok=True)
        for step in (self._translate, self._compile):
            while errors := step():
                self.refused |= errors
        self.stamp.write_text(json.dumps({"wanted": self.wanted, "refused": self.refused}))
        return self

    def load(self, modules: Modules) -> None:
        specification = importlib.util.spec_from_file_location(self.name, self.library)
        loaded = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(loaded)
        modules.refused |= self.refused
        for i, shape in enumerate(self.shapes):
            if shape.key not in self.refused:
                modules.functions[shape.key] = getattr(loaded, f"call_{i:04}")

    def _source(self) -> Path:
        return self.folder / f"{self.name}.pyx"

    def _text(self, refused: Container[str]) -> str:
        calls = (function(s, f"call_{i:04}") for i, s in enumerate(self.shapes) if s.key not in refused)
        return "\n\n".join([HEADER, *calls])

    def _translate(self) -> dict[str, str]:
        self._source().write_text(self._text(self.refused))
        program = (
            "from interop.build import Extension, cythonize\n"
            f"module = Extension({self.name!r}, [{self._source().name!r}], stable={STABLE!r})\n"
            "(module,) = cythonize([module], emit_linenums=True, force=True, quiet=True)\n"
            "print(module.sources[0])\n"
            "print(*(f'-I{folder}' for folder in module.include_dirs), sep='\\n')\n"
            "print(*(f'-D{name}={value or 1}' for name, value in module.define_macros), sep='\\n')"
        )
        done = self._run([sys.executable, "-c", program])
        self.generated, *self.flags = done.stdout.splitlines() or [""]
        return self._errors(done, r":(\d+):\d+: (?!warning)(.*)")

    def _compile(self) -> dict[str, str]:
        command = ["c++", "-std=c++20", "-O0", "-w", "-fPIC", "-shared", "-fmax-errors=200", "-fvisibility=hidden"]
        command += [*filter(None, self.flags), f"-I{sysconfig.get_path('include')}"]
        libraries = [f"-L{folder}" for folder in cpp_extension.library_paths()]
        names = ("c10", "torch_cpu", "torch", "torch_python")
        libraries += [get_stable_library()] if STABLE else [f"-l{name}" for name in names]
        done = self._run([*command, self.generated, "-o", self.library.name, *libraries])
        # If the error is in a template of ours, "required from here" names the line, and the error comes after it.
        errors = self._errors(done, r":(\d+):\d+:(?:   required from here[\s\S]*?error:| error:) (.*)")
        if errors:
            # The functions leave the C++ only when Cython writes it again.
            self.refused |= errors
            self._translate()
        return errors

    def _run(self, command: list[str]) -> subprocess.CompletedProcess:
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True)

    def _errors(self, done: subprocess.CompletedProcess, pattern: str) -> dict[str, str]:
        """The shapes of the functions in which a compiler found errors, each with the first error."""
        if done.returncode == 0:
            return {}
        output = done.stdout + done.stderr
        starts = {}
        for number, line in enumerate(self._source().read_text().splitlines(), 1):
            if match := re.match(r"def call_(\d+)", line):
                starts[number] = self.shapes[int(match[1])].key
        errors: dict[str, str] = {}
        for match in re.finditer(rf"{re.escape(self._source().name)}{pattern}", output):
            before = [number for number in starts if number <= int(match[1])]
            if before:
                errors.setdefault(starts[max(before)], match[2].strip())
        if not errors:
            raise AssertionError(f"{self.name} does not compile, and no function of it is to blame:\n{output[-5000:]}")
        return errors
