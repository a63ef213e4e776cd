"""What is wrong with a compiled extension module."""

import importlib.machinery
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from interop.cli import CommandError
from interop.doctor.environment import openmp_finding
from interop.doctor.finding import Finding, Level, ok, problem, warning
from interop.toolchain import Torch, find_torch

try:
    from interop.doctor.elf import Library, NotALibraryError, read
    from interop.doctor.loader import Closure, closure, try_import
    from interop.doctor.symbols import probable_cause
except ModuleNotFoundError as error:
    raise CommandError(f"to look at modules, the doctor needs {error.name}; run: pip install pyelftools") from error

__all__ = ["examine_module"]

REBUILD = "rebuild it, in its project: pip install --no-build-isolation --force-reinstall --no-deps ."
TORCHS = re.compile(r"lib(?:c10|torch)(?:_\w+)?(?:-[0-9a-f]{8,})?\.so")
"""The names of torch's libraries, also with the hash that auditwheel puts into those that it copies."""

_SHOWN = 5


@dataclass(frozen=True)
class Parts:
    """The files of a module, one or two, and what our build helpers have noted in them.

    Attributes
    ----------
    name
        The last part of the module's name.
    entry
        What Python imports.
    native
        What has the code: the same, or the second file of a module from `interop.build`.
    abi
        The name of the ABI of torch that it was compiled for; None if that is noted nowhere.
    wanted
        The file name of the second file, if there is to be one.
    """

    name: str
    entry: Library
    native: Library | None
    abi: str | None
    wanted: str | None


def examine_module(file: Path, run: bool = True) -> list[Finding]:
    """What there is to say of the module in `file`.

    If nothing is wrong with the file, and with `run`, the module is imported in a process of its own.
    """
    try:
        library = read(file)
    except (NotALibraryError, OSError) as error:
        fix = "name a compiled extension module, such as package/module.cpython-311-x86_64-linux-gnu.so"
        return [problem("file", str(error), fix)]
    parts = _parts(library)
    findings = [*_python(parts), *_torch(parts)]
    if parts.native is None:
        return findings
    torch = find_torch()
    everything = closure(parts.native, Path(torch.lib_dir) if torch else None)
    findings += [
        _search_path(parts.native, torch),
        *_libraries(parts.native, everything, torch),
        *_copies(everything, torch),
        *_symbols(parts.native, everything, torch),
    ]
    if not run or any(finding.level is Level.PROBLEM for finding in findings):
        return findings
    return [*findings, *_import(parts, torch)]


def _parts(library: Library) -> Parts:
    """Both files, given one of them."""
    name, folder = library.path.name.partition(".")[0], library.path.parent
    half = re.fullmatch(r"_(\w+)_(torch_\d\w*)", name)
    if half and half[1] in library.entry_points:
        entries = [path for path in folder.glob(f"{half[1]}.*") if _suffix(path.name) is not None]
        if entries:
            return _parts(read(entries[0]))
        return Parts(half[1], library, library, half[2], None)
    second = library.constants(rb"\b_" + name.encode() + rb"_torch_\d\w*(?:\.[\w-]+)*\.so\b")
    if second:
        path = folder / second[0]
        abi_name = second[0].partition(".")[0].removeprefix(f"_{name}_")
        return Parts(name, library, read(path) if path.is_file() else None, abi_name, second[0])
    noted = library.constants(rb"\binterop\.abi\.(torch_\d\w*)")
    return Parts(name, library, library, noted[0] if noted else None, None)


def _suffix(name: str) -> str | None:
    """The suffix of a file that this Python takes for an extension module."""
    return next((s for s in importlib.machinery.EXTENSION_SUFFIXES if name.partition(".")[2] == s[1:]), None)


def _python(parts: Parts) -> list[Finding]:
    entry, this = parts.entry, read(Path(sys.executable).resolve())
    if (entry.machine, entry.bits) != (this.machine, this.bits):
        text = f"for {entry.machine} with {entry.bits} bits, and this Python is for {this.machine} with {this.bits}"
        return [problem("machine", text, f"{REBUILD}, on a machine of this kind")]
    findings = []
    suffix = entry.path.name.partition(".")[2]
    if _suffix(entry.path.name) is None:
        other = re.match(r"cpython-(\d)(\d+)(t?)", suffix)
        built = f"for CPython {other[1]}.{other[2]}{other[3] and ', free-threaded'}" if other else f"as .{suffix}"
        accepted = ", ".join(importlib.machinery.EXTENSION_SUFFIXES)
        text = f"built {built}; this is {sys.version_info[0]}.{sys.version_info[1]}, which imports {accepted}"
        findings.append(problem("Python", text, f"with this Python, {REBUILD}"))
    else:
        findings.append(ok("Python", f"a module for this one (.{suffix})"))
    if parts.name not in entry.entry_points:
        names = ", ".join(f"PyInit_{name}" for name in entry.entry_points)
        text = f"there is no PyInit_{parts.name}; there is {names or 'none at all'}"
        fix = (
            f"the file was renamed: call it {entry.entry_points[0]}.{suffix}, or build it under the new name"
            if entry.entry_points
            else "this is a library and no module of Python: is the .pyx, or the file with PyInit_, among the sources?"
        )
        findings.append(problem("import", text, fix))
    if parts.native is None:
        others = ", ".join(sorted(path.name for path in entry.path.parent.glob(f"_{parts.name}_torch_*"))) or "none"
        text = f"its second half, {parts.wanted}, is not beside it ({others} of this kind)"
        findings.append(problem("files", text, f"copy both files of a module; or {REBUILD}"))
    elif parts.native is not entry:
        findings.append(ok("files", f"two, the second is {parts.native.path.name}"))
    return findings


def _torch(parts: Parts) -> list[Finding]:
    library = parts.native or parts.entry
    compilers = f", compiled by {', '.join(library.compilers)}" if library.compilers else ""
    running = find_torch()
    if parts.abi is None:
        if not any(TORCHS.match(name) for name in library.needed):
            return [ok("torch", f"it uses none of torch's libraries{compilers}")]
        text = f"nothing in it says for which torch it was built, as modules from interop.build do{compilers}"
        return [ok("torch", text)]
    built = f"built for torch {parts.abi.removeprefix('torch_').replace('_', '.')}{compilers}"
    if running is None:
        return [problem("torch", f"{built}, and there is none", "pip install torch")]
    if running.abi != parts.abi:
        return [problem("torch", f"{built}, but torch {running.version} is installed", REBUILD)]
    return [ok("torch", built)]


def _search_path(library: Library, torch: Torch | None) -> Finding:
    if not library.search:
        return ok("RPATH", "none: torch's libraries are found once torch is imported")
    text = ":".join(library.search)
    absolute = [folder for folder in library.folders if "$ORIGIN" not in text and folder.is_absolute()]
    gone = [str(folder) for folder in absolute if not folder.is_dir()]
    with_torch = [folder for folder in absolute if (folder / "libc10.so").exists()]
    if torch and any(not _same(folder, Path(torch.lib_dir)) for folder in with_torch):
        fix = f"it would load a second torch: {REBUILD}, with no -rpath to torch"
        return problem("RPATH", f"{text} leads to another torch than the one installed, in {torch.folder}", fix)
    if gone:
        fix = "it is a folder of the machine that built it: take the -rpath away, or use one relative to $ORIGIN"
        return warning("RPATH", f"{text}: there is no {', '.join(gone)}", fix)
    return ok("RPATH", text)


def _libraries(library: Library, everything: Closure, torch: Torch | None) -> list[Finding]:
    findings = []
    for name, (user, error) in everything.missing.items():
        who = "" if user == library.path.name else f", which {user} needs"
        findings.append(problem("libraries", f"{name}{who} is not found ({error})", _where_from(name, torch)))
    for name, versions in library.versions.items():
        found = everything.named(name)
        lacking = sorted(set(versions) - found.offered_versions) if found and found.offered_versions else []
        if found and lacking:
            text = f"{found.path} has no {', '.join(lacking)}"
            fix = f"it was built on a system with a newer {name}: build it here, or on the oldest system that it is for"
            findings.append(problem("libraries", text, fix))
    if not findings:
        findings.append(ok("libraries", ", ".join(library.needed) or "none"))
    return findings


def _where_from(name: str, torch: Torch | None) -> str:
    """What to do about a library that is missing."""
    if TORCHS.match(name):
        if torch is None:
            return "pip install torch"
        if "cuda" in name:
            return (
                f"it was built with a torch for CUDA, and {torch.version} has none: {REBUILD}, or install such a torch"
            )
        return f"torch {torch.version} has no such library: {REBUILD}"
    if re.match(r"lib(cuda|cudart|cublas|cudnn|cusparse|cusolver|nvrtc|nccl)", name):
        has = f"is built for CUDA {torch.cuda}" if torch and torch.cuda else "is built without CUDA"
        return f"this is CUDA's, and the installed torch {has}: {REBUILD}, with nvcc of torch's version of CUDA"
    return "install the package that has it, or name its folder: LD_LIBRARY_PATH, or extra_link_args=['-Wl,-rpath,...']"


def _copies(everything: Closure, torch: Torch | None) -> list[Finding]:
    """Torch's libraries from elsewhere than torch: loaded twice, they register everything twice."""
    copies = [
        str(path)
        for path in everything.libraries
        if TORCHS.match(path.name) and torch and not _same(path.parent, Path(torch.lib_dir))
    ]
    if not copies:
        return []
    text = f"it would load copies of torch's libraries: {', '.join(copies)}"
    fix = (
        'with two copies in a process, operators are registered twice ("Key already registered") and tensors of one '
        "are not those of the other. Delete the copies, link without -rpath to them, and leave torch's libraries out "
        "of wheels: auditwheel repair --exclude 'libc10*' --exclude 'libtorch*'"
    )
    return [problem("torch twice", text, fix)]


def _symbols(library: Library, everything: Closure, torch: Torch | None) -> list[Finding]:
    if everything.missing:
        return []  # what those would define is not known
    undefined = everything.undefined(library)
    causes: dict[str, list[str]] = {}
    for symbol in undefined:
        text, fix = probable_cause(symbol, everything.libraries.values(), torch)
        causes.setdefault(fix, []).append(text)
    return [
        problem("symbols", f"nothing defines {'; '.join(texts[:_SHOWN])}{_more(len(texts) - _SHOWN)}", fix)
        for fix, texts in causes.items()
    ] or [ok("symbols", f"all {len(library.undefined)} that it uses are defined")]


def _import(parts: Parts, torch: Torch | None) -> list[Finding]:
    """The proof: an import, without torch before it, and if that fails, with."""
    root, name = parts.entry.path.absolute().parent, parts.name
    while (root / "__init__.py").exists():
        root, name = root.parent, f"{root.name}.{name}"
    alone = try_import(name, root, torch_first=False)
    if not alone.error:
        return [ok("import", f"{name} can be imported, with no import of torch before it"), _runtimes(alone.libraries)]
    after_torch = try_import(name, root, torch_first=True)
    if after_torch.error:
        fix = f"if that does not come from the module's own code, {REBUILD}"
        return [problem("import", f"{name} cannot be imported: {after_torch.error}", fix)]
    text = f"{name} can be imported after torch, and not before: {alone.error}"
    fix = (
        "torch's libraries are found only once torch has loaded them: import torch before the module, in the "
        "__init__.py of its package; or build it with interop.build.Extension, whose modules do that themselves"
    )
    return [problem("import", text, fix), _runtimes(after_torch.libraries)]


def _runtimes(libraries: tuple[str, ...]) -> Finding:
    return openmp_finding([path for path in libraries if os.path.exists(path)])


def _same(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve()


def _more(number: int) -> str:
    return f"; and {number} more" if number > 0 else ""
