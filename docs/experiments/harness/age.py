"""Whether a recorded result is older than the code that it measures, as git's history says."""

import subprocess
from collections.abc import Sequence
from itertools import islice
from pathlib import PurePath

from experiments import CHECKOUT
from experiments.harness import sources

__all__ = ["BEGIN", "OLDER", "note"]

OLDER = "older than the code that it measures"
"""What other pages say of a result beside its date, if the experiment's page has a note."""

BEGIN = f"This result is {OLDER}: "
"""What a note begins with. What follows depends on the history at hand, so no test may insist on it."""

SHOWN = 3
"""The maximum number of files that a note names."""


def note(name: str, machine: str, result: dict, measured: Sequence[str]) -> str:
    """The files whose code changed since a result of the experiment `name` was recorded, in a sentence.

    Its own sources count, and the paths `measured`, relative to the checkout. A change of comments or docstrings is no
    change, nor is another name of a file. Returns "" if no code changed, or if the clone lacks the history.
    """
    folder = f"docs/experiments/{name}"
    git = result.get("git") or {}
    since = git.get("commit", "")
    if git.get("changed"):
        # What was measured is in no commit before the one that the result came with, and that may be yet to come.
        recorded = f"{folder}/results/{machine}.json"
        if _git("status", "--porcelain", "--", recorded):
            return ""
        since = _git("log", "-1", "--format=%H", "--", recorded).strip()
    if not since:
        return ""
    not_measured = [f":(exclude){folder}/{other}" for other in ("README.md", "demo.py", "report.py", "results")]
    touched = _git("diff", "--name-status", "--find-renames", since, "HEAD", "--", folder, *measured, *not_measured)
    files = (line.split("\t")[1:] for line in touched.splitlines())  # the path, or both paths of a file that was moved
    changed = (file[-1] for file in files if _code(since, file[0]) != _code("HEAD", file[-1]))
    first = [f"`{PurePath(file).name}`" for file in islice(changed, SHOWN + 1)]  # no more are compared
    if not first:
        return ""
    others = " and others" if len(first) > SHOWN else ""
    return f"{BEGIN}since commit {since[:10]}, the code has changed in {', '.join(first[:SHOWN])}{others}."


def _code(commit: str, file: str) -> list[str]:
    """The lines of code of a file, without the names of the headers that it includes; none if there is no such file."""
    lines = sources.code(_git("show", f"{commit}:{file}"), PurePath(file).suffix)
    return [line for line in lines if not line.startswith('#include "')]


def _git(*arguments: str) -> str:
    """What git prints; nothing where there is no git, or it does not know a commit."""
    try:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout
