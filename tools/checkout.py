"""`head` and `changes`: which commit a checkout has, and what differs from it. A result names the commit it is of."""

import subprocess
from pathlib import Path


def head(root: Path) -> str:
    """The short name of the commit that is checked out in `root`."""
    return subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=root, text=True).strip()


def changes(root: Path, *results: Path) -> str:
    """What git says has changed in `root`, but for these files of docs/, which tools write their results to."""
    ours = [f":!docs/{path.name}" for path in results]
    return subprocess.check_output(["git", "status", "--porcelain", "--", ".", *ours], cwd=root, text=True)
