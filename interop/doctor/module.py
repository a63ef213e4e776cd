"""Find out what is wrong with a compiled extension module."""

import importlib.machinery
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from interop.doctor.elf import DamagedLibraryError, Library, NotALibraryError, read
from interop.doctor.environment import openmp_finding
from interop.doctor.finding import Finding, Level, ok, problem, warning
from interop.doctor.folder import hiding
from interop.doctor.loader import Closure, Imported, closure, try_import
from interop.doctor.symbols import in_words, probable_cause
from interop.errors import Error
from interop.stable_abi import StableABI, release_of
from interop.toolchain import SUFFIXES, Torch, find_torch

__all__ = ["examine_module"]

REBUILD = "rebuild it, in its project: pip install --no-build-isolation --force-reinstall --no-deps ."
LOAD_AGAIN = "call interop.load again, which rebuilds it, and do not move its files"
TORCHS = re.compile(r"lib(?:c10|torch)(?:_\w+)?(?:-[0-9a-f]{8,})?\.so")
"""The names of torch's libraries, with or without the hash that auditwheel adds to copies."""

# The file names of interop.load and interop.load_inline, repeated from interop/jit/precompiled.py, which imports
# torch, and from interop/jit/manifest.py.
_JIT_ENTRY_POINT = "interop_jit"
_JIT_NATIVE = "native.so"
_JIT_MANIFEST = "manifest.json"

_SHOWN = 5

_READER_OF_TABLES = "_ZNKSt6locale2id5_M_idEv"
"""std::locale::id::_M_id() const, which reads the tables that copies of libstdc++ share."""


@dataclass(frozen=True)
class Parts:
    """The one or two files of a module, and the notes of our build helpers in them."""

    name: str  # the last part of the module's name
    entry: Library | None  # the file that Python imports; None if there is only the second file
    native: Library | None  # the file with the code: `entry`, or the second file of `interop.build` or `interop.load`
    abi: str | None  # the name of the torch ABI that it was compiled for; None if there is no note
    wanted: str | None = None  # the name of the missing file, or of the second file
    just_in_time: bool = False  # whether `interop.load` made it
    stable: StableABI | None = None  # set instead of `abi` for a stable module

    @property
    def rebuild(self) -> str:
        """How to rebuild it."""
        return LOAD_AGAIN if self.just_in_time else REBUILD


def examine_module(file: Path, run: bool = True) -> list[Finding]:
    """The findings about the module in `file`.

    If `run` is true and nothing is wrong with the file, a separate process imports the module.
    """
    try:
        library = _read(file)
        parts = _parts(library)
    except _UnreadableError as error:
        return [error.finding(file)]
    if library.is_program:
        return [problem("file", "is a program, not a Python module", _NAME_ONE)]
    findings = [*_python(parts), *_torch(parts)]
    native = parts.native
    if native is None:
        return findings
    torch = find_torch()
    everything = closure(native, Path(torch.lib_dir) if torch else None)
    findings += [
        _search_path(native, everything, torch, parts.rebuild),
        *_libraries(native, everything, torch, parts.rebuild),
        *_copies(everything, torch),
        *_cxx_libraries(everything),
        *_symbols(native, everything, torch, parts.rebuild),
    ]
    if not run or parts.entry is None or any(finding.level is Level.PROBLEM for finding in findings):
        return findings
    return [*findings, *_import(parts, parts.entry)]


_SOURCES = {*SUFFIXES, ".pxd", ".pxi", ".py", ".h", ".hpp", ".cuh"}
_NAME_ONE = "name a compiled extension module, such as package/module.cpython-311-x86_64-linux-gnu.so"


class _UnreadableError(Error):
    """A file of a module cannot be read."""

    def __init__(self, path: Path, error: NotALibraryError | OSError):
        super().__init__(path)
        self.path, self.error = path, error

    def finding(self, asked: Path) -> Finding:
        """The finding, if the user asked about the file `asked`."""
        which = "" if self.path == asked else f"{self.path.name}, the other file of this module, "
        if isinstance(self.error, OSError):
            return problem("file", f"{which}cannot be read: {self.error.strerror}", f"see: ls -l {self.path}")
        if isinstance(self.error, DamagedLibraryError) or which:
            return problem("file", f"{which}{self.error}", f"copy it here again; or {REBUILD}")
        if self.path.suffix in _SOURCES:
            return problem("file", f"is a source, {self.path.suffix}, not a compiled module", _NAME_ONE)
        return problem("file", str(self.error), _NAME_ONE)


def _read(path: Path) -> Library:
    try:
        return read(path)
    except (NotALibraryError, OSError) as error:
        raise _UnreadableError(path, error) from error


def _parts(library: Library) -> Parts:
    """Both files, given one of them."""
    if _JIT_ENTRY_POINT in library.entry_points:
        return _just_in_time_parts(library)
    half = re.fullmatch(r"_(\w+)_(torch_\d\w*)", _stem(library.path))
    if half is None or half[1] not in library.entry_points:
        return _parts_from(library)
    entry = _entry_of(half[1], library)
    return _parts_from(entry) if entry else Parts(half[1], None, library, half[2], _usual_name(half[1]))


def _parts_from(entry: Library) -> Parts:
    """Both files, given the one that Python imports, which may be the only one."""
    name, _, suffix = entry.path.name.partition(".")
    # A compiler keeps these constants of csrc/bootstrap.cpp unchanged, but may split the name of the second file.
    module = entry.constant(rb"module '(\w+)' cannot load its compiled half")
    abi = entry.constant(rb"(?<![\w.])(torch_\d\w*)(?=\0)")
    if module is None or abi is None:
        stable = _stable(entry)
        # interop.load also makes one file for a stable module, but beside the manifest of its build.
        just_in_time = stable is not None and os.path.isfile(entry.path.with_name(_JIT_MANIFEST))
        return Parts(name, entry, entry, _noted(entry), just_in_time=just_in_time, stable=stable)
    path = entry.path.with_name(f"_{module}_{abi}.{suffix}")
    return Parts(name, entry, _read(path) if os.path.isfile(path) else None, abi, path.name)


def _just_in_time_parts(library: Library) -> Parts:
    """Both files that `interop.load` has made, given one of them. The first imports torch, and is not linked to it."""
    name = next((name for name in library.entry_points if name != _JIT_ENTRY_POINT), _stem(library.path))
    entry = library
    if any(TORCHS.match(needed) for needed in library.needed):
        found = _entry_of(name, library)
        if found is None:
            return Parts(name, None, library, _noted(library), _usual_name(name), just_in_time=True)
        entry = found
    name = _stem(entry.path)
    native = entry.path.parent / _JIT_NATIVE
    second = _read(native) if os.path.isfile(native) else None
    noted = entry.constant(rb"(?<![\w.])(torch_\d\w*)(?=\0)")
    return Parts(name, entry, second, noted, _JIT_NATIVE, just_in_time=True)


def _noted(library: Library) -> str | None:
    """The name of torch's ABI that the declarations of torch.Tensor leave in a module."""
    return library.constant(rb"\binterop\.abi\.(torch_\d\w*)")


def _stable(library: Library) -> StableABI | None:
    """The note of stable/include/interop/stable/shim.h, the only sign of a stable module: it does not link to torch."""
    note = rb"torch-interop stable abi: torch>="
    torch = library.constant(note + rb"(\d+\.\d+)")
    return StableABI(torch, library.constant(note + rb"[\d.]+, (cp3\d+)")) if torch else None


def _entry_of(name: str, native: Library) -> Library | None:
    """The file beside `native` that this Python imports as `name`."""
    beside = [path for path in _beside(native) if _stem(path) == name and path != native.path]
    return next((_read(path) for path in beside if _suffix(path.name) is not None), None)


def _beside(library: Library) -> list[Path]:
    """The files in the folder of a library, if it can be listed."""
    try:
        return sorted(library.path.parent.iterdir())
    except OSError:
        return []


def _usual_name(name: str) -> str:
    return f"{name}{importlib.machinery.EXTENSION_SUFFIXES[0]}"


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]


def _suffix(name: str) -> str | None:
    """The suffix of a file, if this Python accepts it for extension modules."""
    return next((s for s in importlib.machinery.EXTENSION_SUFFIXES if name.partition(".")[2] == s[1:]), None)


def _python(parts: Parts) -> list[Finding]:
    entry = parts.entry
    if entry is None:
        text = f"this is the second file of a module, and its first, {parts.wanted}, is not beside it"
        return [problem("files", text, f"copy both files of a module; or {parts.rebuild}")]
    this = read(Path("/proc/self/exe"))
    if (entry.machine, entry.bits) != (this.machine, this.bits):
        text = f"for {entry.machine} with {entry.bits} bits, but this Python is for {this.machine} with {this.bits}"
        return [problem("machine", text, f"{parts.rebuild}, on a machine of this kind")]
    findings = []
    suffix = entry.path.name.partition(".")[2]
    if _suffix(entry.path.name) is None:
        other = re.match(r"cpython-(\d)(\d+)(t?)", suffix)
        built = f"for CPython {other[1]}.{other[2]}{other[3] and ', free-threaded'}" if other else f"as .{suffix}"
        accepted = ", ".join(importlib.machinery.EXTENSION_SUFFIXES)
        text = f"built {built}; this is {sys.version_info[0]}.{sys.version_info[1]}, which imports {accepted}"
        findings.append(problem("Python", text, f"with this Python, {parts.rebuild}"))
    elif parts.stable and parts.stable.python and sys.version_info[:2] < (3, int(parts.stable.python[3:])):
        running = f"{sys.version_info[0]}.{sys.version_info[1]}"
        text = f"built for CPython 3.{parts.stable.python[3:]} and later; this is {running}"
        findings.append(problem("Python", text, f"with an older py_limited_api, {parts.rebuild}"))
    else:
        findings.append(ok("Python", f"a module for this one (.{suffix})"))
    if parts.name not in entry.entry_points:
        names = ", ".join(f"PyInit_{name}" for name in entry.entry_points)
        text = f"there is no PyInit_{parts.name}; there is {names or 'none at all'}"
        fix = (
            f"the file was renamed: restore the name {entry.entry_points[0]}.{suffix}, or build it under the new name"
            if entry.entry_points
            else "this is a library, not a Python module: is the .pyx, or the file with PyInit_, among the sources?"
        )
        findings.append(problem("import", text, fix))
    if parts.native is None:
        kind = "native" if parts.just_in_time else f"_{parts.name}_torch_"
        others = ", ".join(path.name for path in _beside(entry) if path.name.startswith(kind))
        text = f"its second half, {parts.wanted}, is not beside it ({others or 'none'} of this kind)"
        findings.append(problem("files", text, f"copy both files of a module; or {parts.rebuild}"))
    elif parts.native is not entry:
        by = ", made by interop.load" if parts.just_in_time else ""
        findings.append(
            ok("files", f"two{by}: Python imports {entry.path.name}, the code is in {parts.native.path.name}")
        )
    return findings


def _torch(parts: Parts) -> list[Finding]:
    library = parts.native or parts.entry
    named = library.compilers if library else ()
    more = f" and {len(named) - 4} others" if len(named) > 4 else ""
    compilers = f", compiled by {', '.join(name[:80] for name in named[:4])}{more}" if named else ""
    running = find_torch()
    if parts.stable:
        return _stable_torch(parts.stable, running, compilers, parts.rebuild)
    if parts.abi is None:
        if not any(TORCHS.match(name) for name in (library.needed if library else ())):
            return [ok("torch", f"it uses none of torch's libraries{compilers}")]
        text = f"it does not record the torch that it was built for, unlike modules from interop.build{compilers}"
        return [ok("torch", text)]
    built = f"built for torch {parts.abi.removeprefix('torch_').replace('_', '.')}{compilers}"
    if running is None:
        return [problem("torch", f"{built}, but torch is not installed", "pip install torch")]
    if running.abi != parts.abi:
        return [problem("torch", f"{built}, but torch {running.version} is installed", parts.rebuild)]
    return [ok("torch", built)]


def _stable_torch(abi: StableABI, running: Torch | None, compilers: str, rebuild: str) -> list[Finding]:
    oldest = abi.torch
    built = f"stable, torch >= {oldest}{f', abi3 {abi.python}' if abi.python else ''}{compilers}"
    if running is None:
        return [problem("torch", f"{built}, but torch is not installed", f"pip install 'torch>={oldest}'")]
    if release_of(running.version) < release_of(oldest):
        fix = f"pip install 'torch>={oldest}'; or, with an older release as stable, {rebuild}"
        return [problem("torch", f"{built}, but torch {running.version} is installed", fix)]
    return [ok("torch", built)]


def _search_path(library: Library, everything: Closure, torch: Torch | None, rebuild: str) -> Finding:
    if not library.search:
        if any(TORCHS.match(name) for one in everything.libraries.values() for name in one.needed):
            return ok("RPATH", "none: torch's libraries are found after torch is imported")
        return ok("RPATH", "none: the loader searches the system's folders for its libraries")
    text = ":".join(library.search)
    absolute = [folder for folder in library.folders if "$ORIGIN" not in text and folder.is_absolute()]
    gone = [str(folder) for folder in absolute if not os.path.isdir(folder)]
    with_torch = [folder for folder in absolute if os.path.exists(folder / "libc10.so")]
    if torch and any(not _same(folder, Path(torch.lib_dir)) for folder in with_torch):
        fix = f"it would load a second torch: {rebuild}, with no -rpath to torch"
        return problem("RPATH", f"{text} leads to another torch than the one installed, in {torch.folder}", fix)
    if gone:
        fix = "it is a folder of the machine that built it: remove the -rpath, or use one relative to $ORIGIN"
        return warning("RPATH", f"{text}: there is no {', '.join(gone)}", fix)
    return ok("RPATH", text)


def _libraries(library: Library, everything: Closure, torch: Torch | None, rebuild: str) -> list[Finding]:
    findings = []
    for name, (user, error) in everything.missing.items():
        who = "" if user == library.path.name else f", which {user} needs,"
        if not error:
            findings.append(problem("libraries", f"{name}{who} is not found", _where_from(name, torch, rebuild)))
        else:
            fix = "the file exists, but cannot be loaded: reinstall its package"
            findings.append(problem("libraries", f"{name}{who} cannot be loaded ({error})", fix))
    by_name = everything.by_name()
    needed = [(one, *need) for one in everything.libraries.values() for need in one.versions.items()]
    for one, name, versions in needed:
        found = by_name.get(name)
        lacking = sorted(set(versions) - found.offered_versions) if found and found.offered_versions else []
        if found and lacking:
            who = "" if one is library else f", which {one.path.name} needs"
            text = f"{found.path} has no {', '.join(lacking)}{who}"
            fix = f"it was built on a system with a newer {name}: build it here, or on the oldest system to run on"
            findings.append(problem("libraries", text, fix))
    if by_path := [name for name in library.needed if "/" in name and name not in everything.missing]:
        text = f"it is linked to a path, {', '.join(by_path)}, and finds no such library elsewhere"
        findings.append(warning("libraries", text, _BY_NAME))
    if not findings:
        findings.append(ok("libraries", ", ".join(library.needed) or "none"))
    return findings


_BY_NAME = "link it by name, with -L and -l, to a library that has a name: -Wl,-soname,libNAME.so when that is linked"


def _where_from(name: str, torch: Torch | None, rebuild: str) -> str:
    """The fix for a missing library."""
    if "/" in name:
        return _BY_NAME
    if TORCHS.match(name):
        if torch is None:
            return "pip install torch"
        if "cuda" in name and torch.cuda is None:
            return (
                f"it was built with a torch for CUDA, but torch {torch.version} has no CUDA: {rebuild}, or install a "
                "torch with CUDA"
            )
        return f"torch {torch.version} has no such library: {rebuild}"
    if re.match(r"lib(cuda|cudart|cublas|cudnn|cusparse|cusolver|nvrtc|nccl)", name):
        has = f"is built for CUDA {torch.cuda}" if torch and torch.cuda else "is built without CUDA"
        return f"this library is part of CUDA, and torch {has}: {rebuild}, with nvcc of torch's version of CUDA"
    return "install the package that has it, or name its folder: LD_LIBRARY_PATH, or extra_link_args=['-Wl,-rpath,...']"


def _copies(everything: Closure, torch: Torch | None) -> list[Finding]:
    """Copies of torch's libraries outside the installed torch. If loaded twice, they register everything twice."""
    copies = [
        str(path)
        for path in everything.libraries
        if TORCHS.match(path.name) and torch and not _same(path.parent, Path(torch.lib_dir))
    ]
    if not copies:
        return []
    text = f"it would load copies of torch's libraries: {', '.join(copies)}"
    fix = (
        'with two copies in a process, operators are registered twice ("Key already registered", "Tried to register '
        'multiple backend fallbacks"), torch finds no Python ("compiled without Python support"), and tensors of one '
        "are not those of the other. Delete the copies, link without -rpath to them, and leave torch's libraries out "
        "of wheels: auditwheel repair --exclude 'libc10*' --exclude 'libtorch*'"
    )
    return [problem("torch twice", text, fix)]


def _cxx_libraries(everything: Closure) -> list[Finding]:
    """Copies of libstdc++ that were linked in statically: csrc/bootstrap.cpp says why they do not work."""
    copies = [
        str(path)
        for path, library in everything.libraries.items()
        if _READER_OF_TABLES in library.defined and not path.name.startswith("libstdc++.so")
    ]
    if not copies:
        return []
    text = f"libstdc++ is linked into {', '.join(copies)}, and may crash beside the copy that torch uses"
    fix = "rebuild with a compiler that has libstdc++.so, such as CXX=g++, and without -static-libstdc++ in LDFLAGS"
    return [problem("libstdc++", text, fix)]


def _symbols(library: Library, everything: Closure, torch: Torch | None, rebuild: str) -> list[Finding]:
    if everything.missing:
        return []  # the symbols of the missing libraries are unknown
    undefined = everything.undefined(library)
    causes: dict[str, list[str]] = {}
    for symbol, name in zip(undefined, in_words(undefined) if undefined else (), strict=True):
        text, fix = probable_cause(symbol, name, everything.libraries.values(), torch, rebuild)
        causes.setdefault(fix, []).append(text)
    return [
        problem("symbols", f"nothing defines {'; '.join(texts[:_SHOWN])}{_more(len(texts) - _SHOWN)}", fix)
        for fix, texts in causes.items()
    ] or [ok("symbols", f"all {len(library.undefined)} that it uses are defined")]


def _import(parts: Parts, entry: Library) -> list[Finding]:
    """Import the module without torch before it and, if that fails, after torch."""
    root, name = entry.path.absolute().parent, parts.name
    while (root / "__init__.py").exists():
        root, name = root.parent, f"{root.name}.{name}"
    alone, after_torch = _try_both(name, root)
    if _RELATIVE in after_torch.error:
        # Its package has folders without __init__.py, and only sys.path says where such a package begins.
        top = _folder_of_imports(root)
        if top is not None:
            name = ".".join([*root.resolve().relative_to(top).parts, name])
            root = top
            alone, after_torch = _try_both(name, root)
        # If the name was guessed, an error about a missing package says nothing about the module.
        if top is None or _RELATIVE in after_torch.error or after_torch.error.startswith("ModuleNotFoundError"):
            text = f"{name} belongs to a package with an unknown root: {after_torch.error}"
            return [warning("import", text, "run the doctor in the folder from which the module can be imported")]
    if not alone.error:
        return [
            ok("import", f"{name} can be imported without importing torch first"),
            _runtimes(alone.libraries),
        ]
    if after_torch.error:
        fix = f"if that does not come from the module's own code, {parts.rebuild}"
        return [problem("import", f"{name} cannot be imported: {after_torch.error}", fix), *hiding(root)]
    # Only a warning, because users who import torch first never notice.
    text = f"{name} can be imported after torch, but not before: {alone.error}"
    fix = (
        "the loader finds torch's libraries only after torch has loaded them: import torch before the module, in the "
        "__init__.py of its package; or build it with interop.build.Extension, whose modules do that themselves"
    )
    return [warning("import", text, fix), _runtimes(after_torch.libraries)]


_RELATIVE = "attempted relative import"


def _try_both(name: str, root: Path) -> tuple[Imported, Imported]:
    """The results of the import without torch before it and after torch; equal if torch makes no difference."""
    alone = try_import(name, root, torch_first=False)
    if not alone.error or _RELATIVE in alone.error:
        return alone, alone
    return alone, try_import(name, root, torch_first=True)


def _folder_of_imports(folder: Path) -> Path | None:
    """The deepest parent of `folder` that is on sys.path or is the current folder."""
    tops = {Path(top).resolve() for top in sys.path if top}
    with suppress(FileNotFoundError):  # if the current folder was removed
        tops.add(Path.cwd())
    return next((parent for parent in folder.resolve().parents if parent in tops), None)


def _runtimes(libraries: tuple[str, ...]) -> Finding:
    return openmp_finding([path for path in libraries if os.path.exists(path)])


def _same(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve()


def _more(number: int) -> str:
    return f"; and {number} more" if number > 0 else ""
