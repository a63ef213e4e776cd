"""``python tools/torch_tests.py [FOLDER]``: PyTorch's own tests of NumPy, buffers and DLPack, with our functions.

FOLDER holds files of pytorch's folder `test`, at the tag of the installed torch. Without FOLDER, the program fetches
the files from GitHub into build/torch-tests. They belong to another project, and are not part of this one.

Each file runs twice, with torch's functions and with ours in their place. A test that fails only with ours is a
difference. If `BY_DESIGN` does not have the test, the program fails.
"""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import torch

import interop

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "https://raw.githubusercontent.com/pytorch/pytorch/{tag}/test/{name}"
FILES = {  # the class, by its name before torch adds the device, and the functions that its tests need
    "test_numpy_interop.py": ("TestNumPyInterop", ["from_numpy"]),
    "test_tensor_creation_ops.py": ("TestBufferProtocol", ["from_buffer"]),
    "test_dlpack.py": ("TestTorchDlPack", ["from_dlpack", "to_dlpack"]),
}
READ_ONLY = "read-only memory is refused, where torch warns once and then writes to it"
BY_DESIGN = {
    "test_numpy_non_writeable": READ_ONLY,
    "test_non_writable_buffer": READ_ONLY,
    "test_numpy_scalar_cmp_cpu_bfloat16": "bfloat16 has arrays, those of ml_dtypes, where torch has a TypeError",
    "test_to_numpy_force_argument": "the classes are torch's, but a message names the argument and what to call",
    "test_invalid_positional_args": "an empty buffer, no elements and an offset at the end give empty tensors",
    "test_not_a_buffer": "an object without a buffer is a TypeError, as memoryview(obj) raises it, and no ValueError",
}
"""The reason for each test that fails only with ours, by its name. docs/bridges.md has them too."""


def adapters() -> dict[tuple[object, str], object]:
    """Replacements for torch's functions: ours, with the signatures of torch's."""

    def from_numpy(array):
        return interop.from_numpy(array)

    def numpy(tensor, *, force=False):
        return interop.to_numpy(tensor, force=force)

    def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
        tensor = interop.from_buffer(buffer, dtype=dtype, shape=(count,), offset=offset)
        return tensor.requires_grad_(requires_grad)

    result = {
        (torch, "from_numpy"): from_numpy,
        (torch.Tensor, "numpy"): numpy,
        (torch, "frombuffer"): frombuffer,
    }
    if hasattr(interop, "from_dlpack"):
        for place in (torch, torch.utils.dlpack):
            result[place, "from_dlpack"] = interop.from_dlpack
            result[place, "to_dlpack"] = interop.to_dlpack
        result[torch.Tensor, "__dlpack__"] = lambda tensor, **options: interop.to_dlpack(tensor, **options)
    return result


def main() -> int:
    """Runs the available files, and prints the counts and each difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="with files of pytorch's folder test")
    parser.add_argument("--run", nargs=3, metavar=("FILE", "OURS", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        path, ours, out = options.run
        Path(out).write_text(json.dumps(outcomes(Path(path), ours == "ours")))
        return 0
    folder = options.folder or fetched()
    unexpected = 0
    for name, (_, needed) in FILES.items():
        missing = [function for function in needed if not hasattr(interop, function)]
        if missing or not (folder / name).exists():
            print(f"{name}: left out: {'interop has no ' + ', '.join(missing) if missing else 'not in the folder'}")
            continue
        unexpected += compare(name, *(in_a_process(folder / name, who) for who in ("torch", "ours")))
    return 1 if unexpected else 0


def compare(name: str, theirs: dict[str, str], ours: dict[str, str]) -> int:
    """Prints how one file's outcomes differ. Returns the number of unexplained differences."""
    counts = Counter(theirs.values())
    differing = {test: ours[test] for test in theirs if theirs[test] == "passed" and ours[test] != "passed"}
    reasons = {test: reason_of(test) for test in differing}
    both = sum(theirs[test] == ours[test] == "passed" for test in theirs)
    failing = [test for test in theirs if theirs[test] not in ("passed", "skipped")]
    print(
        f"{name}: {len(theirs)} tests; {counts['passed']} pass with torch's functions, {both} of them with ours, "
        f"{sum(map(bool, reasons.values()))} differ by design; {counts['skipped']} skipped, {len(failing)} fail anyway"
    )
    for reason, count in Counter(filter(None, reasons.values())).items():
        print(f"  by design, {count}: {reason}")
    for test in (test for test, reason in reasons.items() if not reason):
        print(f"  DIFFERS: {test}: {differing[test]}")
    only_ours = [test for test in failing if ours[test] == "passed"]
    print("".join(f"  only with ours: {test}\n" for test in only_ours), end="")
    return sum(not reason for reason in reasons.values())


def reason_of(test: str) -> str | None:
    """The reason why a test may differ. torch adds the device to the names of its tests, and then the dtype."""
    found = [name for name in BY_DESIGN if re.search(rf"\.{name}(_cpu(_\w+)?)?$", test)]
    return BY_DESIGN[found[0]] if found else None


def in_a_process(path: Path, who: str) -> dict[str, str]:
    """The outcome of each test of a file, by its name. The tests run in their own process, which may crash."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "outcomes.json")
        command = [sys.executable, __file__, "--run", str(path), who, str(out)]
        environment = os.environ | {"PYTORCH_TESTING_DEVICE_ONLY_FOR": "cpu", "PYTHONPATH": str(path.parent)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if not out.exists():
            raise SystemExit(f"{path.name} ended with status {done.returncode} with {who}:\n{done.stderr[-3000:]}")
        return json.loads(out.read_text())


class Outcomes(unittest.TestResult):
    """Each test's outcome: passed, skipped, or the first line of its error."""

    def __init__(self):
        super().__init__()
        self.found: dict[str, str] = {}

    def stopTest(self, test):  # noqa: N802
        self.found.setdefault(test.id().partition(".")[2], "passed")
        super().stopTest(test)

    def addSkip(self, test, reason):  # noqa: N802
        self._note(test, "skipped")

    def addError(self, test, err):  # noqa: N802
        self._note(test, f"{err[0].__name__}: {str(err[1]).strip().splitlines()[0] if str(err[1]).strip() else ''}")

    def addFailure(self, test, err):  # noqa: N802
        self.addError(test, err)

    def addSubTest(self, test, subtest, err):  # noqa: N802
        if err:
            self.addError(test, err)

    def addExpectedFailure(self, test, err):  # noqa: N802
        self._note(test, "skipped")

    def _note(self, test, outcome):
        self.found.setdefault(test.id().partition(".")[2], outcome)


def outcomes(path: Path, ours: bool) -> dict[str, str]:
    """Runs the tests of a file here, with our functions or with torch's."""
    if ours:
        for (place, name), function in adapters().items():
            setattr(place, name, function)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    prefix, _ = FILES[path.name]
    suite = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromTestCase(value)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and name.startswith(prefix)
    )
    result = Outcomes()
    suite.run(result)
    return result.found


def fetched() -> Path:
    """A folder with the files at the tag of the installed torch."""
    tag = f"v{torch.__version__.partition('+')[0]}"
    folder = ROOT / "build" / "torch-tests" / tag
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        url = SOURCE.format(tag=tag, name=name)
        if not (folder / name).exists():
            try:
                with urllib.request.urlopen(url, timeout=60) as response:
                    (folder / name).write_bytes(response.read())
            except (urllib.error.URLError, OSError) as error:
                raise SystemExit(f"cannot fetch {url}: {error}; give a folder with the file instead") from error
    return folder


if __name__ == "__main__":
    sys.exit(main())
