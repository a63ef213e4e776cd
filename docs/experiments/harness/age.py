"""Whether a recorded result is older than the code that it measures, as git's history says."""

import subprocess
from collections.abc import Sequence

from experiments import CHECKOUT

__all__ = ["BEGIN", "note"]

BEGIN = "This result is older than the code that it measures: "
"""What a note begins with. What follows depends on the history at hand, so no test may insist on it."""


def note(name: str, machine: str, result: dict, measured: Sequence[str]) -> str:
    """What changed since a result of the experiment `name` was recorded; "" if nothing did, or nobody knows.

    Its own sources count, and the paths `measured`, relative to the checkout. Where a clone lacks the history, nothing
    is said.
    """
    folder = f"docs/experiments/{name}"
    git = result.get("git") or {}
    since = git.get("commit", "")
    if git.get("changed"):
        # What was measured is in no commit before the one that the result came with.
        since = _log("-1", "--format=%H", "--", f"{folder}/results/{machine}.json")
    if not since:
        return ""
    not_measured = [f":(exclude){folder}/{other}" for other in ("README.md", "demo.py", "report.py", "results")]
    commits = _log("--format=%h of %cs", "--no-merges", f"{since}..HEAD", "--", folder, *measured, *not_measured)
    if not commits:
        return ""
    last, *others = commits.splitlines()
    what = f"{1 + len(others)} commits after {since[:10]} changed the code, the last one {last}"
    return BEGIN + (f"{what}." if others else f"{last} changed the code.")


def _log(*arguments: str) -> str:
    """What git log prints; nothing where there is no git, or it does not know a commit."""
    try:
        command = ["git", "log", *arguments]
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
