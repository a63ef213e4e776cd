"""The C++ compiler: its flags for a module, and its commands."""

import errno
import os
import re
import shlex
import subprocess
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import setuptools

from interop.jit.diagnostics import BuildError, CommandFailedError
from interop.processes import Commands
from interop.toolchain import compiler

__all__ = ["Compiler", "folders_in", "named_files"]

# setuptools compiles modules with these too: signed integers wrap, and assertions are off.
FLAGS = ("-fPIC", "-DNDEBUG", "-fwrapv", "-pipe")
# Hide the symbols of a module. Otherwise its inline functions and their static variables, which are unique by name in a
# process, would be those of the module that was loaded first: an earlier version of the same source.
HIDDEN = "-fvisibility=hidden"


@dataclass(frozen=True)
class Compiler:
    """The compiler's command for one module."""

    name: str  # the module's
    flags: tuple[str, ...]  # for C++, without macros and folders
    macros: tuple[str, ...]  # as -D
    folders: tuple[str, ...]  # as -I
    commands: Commands  # those of the build, which end together
    verbose: bool = False  # whether commands are printed

    @classmethod
    def of(cls, extension: setuptools.Extension, commands: Commands, verbose: bool = False) -> "Compiler":
        """The compiler for an extension."""
        extra = extension.extra_compile_args
        extra = extra.get("cxx", ()) if isinstance(extra, dict) else extra
        macros = [("TORCH_EXTENSION_NAME", extension.name), ("TORCH_API_INCLUDE_EXTENSION_H", None)]
        return cls(
            extension.name,
            (*_words("CFLAGS"), *_words("CXXFLAGS"), *FLAGS, HIDDEN, *extra),
            (
                *_words("CPPFLAGS"),
                *(f"-D{name}" if value is None else f"-D{name}={value}" for name, value in macros),
                *(f"-D{name}" if value is None else f"-D{name}={value}" for name, value in extension.define_macros),
                *(f"-U{name}" for name in extension.undef_macros),
            ),
            (*(f"-I{folder}" for folder in extension.include_dirs), f"-I{sysconfig.get_path('include')}"),
            commands,
            verbose,
        )

    def compile(self, source: Path, output: Path, *extra: str) -> str:
        """Compile `source`, write its includes to ``OUTPUT.d``, and return the compiler's output."""
        return self.run(
            *self.flags,
            *self.macros,
            *extra,
            *self.folders,
            *("-MD", "-MF", f"{output}.d", "-MT", "x"),
            *("-c", str(source), "-o", str(output)),
        )

    def link(self, objects: Sequence[Path | str], output: Path, *extra: str) -> set[str]:
        """Link a shared library; return the files that the linker has read."""
        words = ("-shared", *_words("LDFLAGS"), *map(str, objects), *extra, "-o", str(output))
        lines = [*self.run(*words, "-Wl,--trace", printed=False).splitlines(), *named_files(words)]
        if self.verbose:
            print(*(f"{line}\n" for line in lines if not os.path.isfile(line)), sep="", end="", flush=True)
        return {os.path.abspath(line) for line in lines if os.path.isfile(line)}

    @property
    def search_path(self) -> list[str]:
        """The folders of headers."""
        return folders_in([*self.flags, *self.macros, *self.folders])

    def run(self, *arguments: str, printed: bool = True) -> str:
        """Run the compiler; raise `CommandFailedError` if it fails, and `BuildError` if it cannot start.

        If `verbose` is set, the method prints the output, unless `printed` is false.
        """
        words = compiler()
        # Its messages are parsed, so they must be in English.
        environment = os.environ | {"LC_ALL": "C", "GCC_COLORS": ""} | self.commands.mark
        command = [*words, *arguments]
        self.commands.check()
        if self.verbose:
            print(shlex.join(command), flush=True)
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, errors="replace"
            )
        except OSError as error:
            missing = error.errno in (errno.ENOENT, errno.EACCES, errno.ENOEXEC)
            advice = (
                "; install g++ (on Debian and Ubuntu: apt install g++), or name one in the environment variable CXX"
            )
            raise BuildError(
                self.name,
                f"the C++ compiler {words[0]!r} does not run ({error.strerror}){advice if missing else ''}",
                command=command,
            ) from error
        if done.returncode:
            raise CommandFailedError(command, done.stdout, done.returncode)
        if self.verbose and printed and done.stdout:
            print(done.stdout, end="", flush=True)
        return done.stdout


def folders_in(words: Sequence[str]) -> list[str]:
    """The include folders in the flags of a compiler, and in the environment."""
    found = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option = next((one for one in ("-I", "-isystem", "-iquote", "-idirafter") if word.startswith(one)), None)
        if option:
            found.append(word.removeprefix(option) or following)
    for variable in ("CPATH", "CPLUS_INCLUDE_PATH"):
        if variable in os.environ:  # an empty entry means the current folder
            found += [folder or os.curdir for folder in os.environ[variable].split(os.pathsep)]
    return found


def named_files(words: Iterable[str]) -> list[str]:
    """The files that flags name, such as ``-Wl,--version-script=FILE``: no compiler or linker lists these as read."""
    parts = (part for word in words for part in re.split("[=,]", word))
    return [os.path.abspath(part) for part in parts if os.path.isfile(part)]


def _words(variable: str) -> list[str]:
    return shlex.split(os.environ.get(variable, ""))
