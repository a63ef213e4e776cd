"""Makes a torch of another release, and the toolkit as it would be installed for it.

The other torch is the installed one, linked, but for its version and two headers: two fields of TensorImpl have changed
places, as fields do between releases, and there is a function that the installed libraries do not have.
"""

import re
import shutil
from pathlib import Path

import torch

from experiments import CHECKOUT
from interop import abi
from interop.cli import CommandError

__all__ = ["VERSION", "make"]

VERSION = "2.99.0"
_VERSION_HEADER = "include/torch/headeronly/version.h"
_TENSOR_HEADER = "include/c10/core/TensorImpl.h"
_FIELDS = ("int64_t storage_offset_ = 0;", "int64_t numel_ = 1;")


def make(folder: Path) -> list[Path]:
    """Write both into `folder`; returns what comes first on the path of a Python for which they are installed."""
    shutil.rmtree(folder, ignore_errors=True)
    _torch(folder / "torch-other" / "torch")
    _interop(folder / "interop-other")
    return [folder / "torch-other", folder / "interop-other"]


def _torch(copy: Path) -> None:
    real = Path(torch.__file__).parent
    changed = [Path("version.py"), Path(_VERSION_HEADER), Path(_TENSOR_HEADER)]
    real_folders = {parent for path in changed for parent in path.parents}
    for parent in sorted(real_folders):
        # Folders on the way to a changed file are real, with links to what is in the installed ones.
        (copy / parent).mkdir(parents=True, exist_ok=True)
        for entry in (real / parent).iterdir():
            if parent / entry.name not in (*changed, *real_folders):
                (copy / parent / entry.name).symlink_to(entry)
    text = (real / "version.py").read_text()
    (copy / "version.py").write_text(re.sub(r"__version__ = .*", f"__version__ = '{VERSION}'", text))
    text = re.sub(r"(TORCH_VERSION_MINOR) \d+", r"\1 99", (real / _VERSION_HEADER).read_text())
    (copy / _VERSION_HEADER).write_text(text + "\nnamespace c10 { long gone_in_the_next_release(); }\n")
    text = (real / _TENSOR_HEADER).read_text()
    one, two = _FIELDS
    if text.count(one) != 1 or text.count(two) != 1:
        raise CommandError(f"torch {torch.__version__} has no fields {_FIELDS} in {_TENSOR_HEADER} to exchange")
    (copy / _TENSOR_HEADER).write_text(text.replace(one, "@").replace(two, one).replace("@", two))


def _interop(copy: Path) -> None:
    """The Python half and the declarations are all that building takes; only they name the torch that they are for."""
    for name in ("interop", "pxd", "csrc"):
        shutil.copytree(CHECKOUT / name, copy / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("interop/_build_info.py", "pxd/torch/_tensor.pxd"):
        text = (copy / name).read_text()
        (copy / name).write_text(text.replace(abi.NAME, abi.abi_name(VERSION)).replace(torch.__version__, VERSION))
