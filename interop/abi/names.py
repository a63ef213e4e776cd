"""Names of torch's binary interfaces. This file imports nothing of torch, because builds use it too."""

import re

PREFIX = "torch_"


def abi_name(version: str) -> str:
    """The name of the binary interface of a torch release.

    Patch releases and builds of one release (``2.13.1``, ``2.13.0+cpu``) share one. A development version
    (``2.14.0a0+git1f2e3d``) has its own, because its headers may differ from every release's.
    """
    release = re.fullmatch(r"(\d+)\.(\d+)\.\d+(?:\.post\d+)?(?:\+.*)?", version)
    if release:
        return f"{PREFIX}{release[1]}_{release[2]}"
    return PREFIX + re.sub(r"\W", "_", version)


def abi_version(name: str) -> str:
    """The version that an `abi_name` stands for, as a person writes it."""
    return name.removeprefix(PREFIX).replace("_", ".")
