"""Names of torch's binary interfaces. This file does not import torch, because builds use it too."""

import re

PREFIX = "torch_"


def abi_name(version: str) -> str:
    """The name of the binary interface of a torch release.

    Patch releases and builds of one minor release (``2.13.1``, ``2.13.0+cpu``) share a name. A development version
    (``2.14.0a0+git1f2e3d``) has its own name, because its headers may differ from those of every release.
    """
    return PREFIX + re.sub(r"\W", "_", _minor_release(version) or version)


def abi_version(name: str) -> str:
    """The version that an `abi_name` stands for, with dots."""
    return name.removeprefix(PREFIX).replace("_", ".")


def torch_requirement(version: str) -> str:
    """The releases of torch that share an `abi_name` with `version`, as a requirement for pip.

    For a development version, that is the version alone.
    """
    release = _minor_release(version)
    return f"torch=={release}.*" if release else f"torch=={version.partition('+')[0]}"


def _minor_release(version: str) -> str | None:
    """The minor release, ``2.13``, that a version belongs to; None for a development version."""
    release = re.fullmatch(r"(\d+\.\d+)\.\d+(?:\.post\d+)?(?:\+.*)?", version)
    return release[1] if release else None
