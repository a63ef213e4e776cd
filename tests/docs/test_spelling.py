"""`make lint` looks words up in codespell's dictionaries and in docs/style.md."""

import subprocess
import sys

import pytest
from conftest import load_script
from doc_blocks import ROOT

pytest.importorskip("codespell_lib", reason="codespell is not installed: pip install -r requirements/lint.txt")


def commands():
    """The commands that tools/lint.py runs."""
    return load_script(ROOT / "tools" / "lint.py").commands(fix=False)


@pytest.fixture(scope="module")
def command():
    """The command of codespell, and the files that it gets."""
    (found,) = [command for command in commands() if "codespell_lib" in command]
    return found[:3], found[3:]


def test_it_reads_prose_and_sources(command):
    files = set(command[1])
    assert files >= {
        "README.md",
        "CONTRIBUTING.md",
        "docs/start.md",
        "docs/from/index.md",
        "interop/__init__.py",
        "csrc/layout.cpp",
        "csrc/include/interop/tensor.h",
        "pxd/interop/accessor.pxd",
        "stable/pxd/torch/stable.pxd",
        "tests/conftest.py",
        "tools/lint.py",
    }
    assert not [name for name in files if name.endswith((".png", ".svg", ".json"))]


@pytest.mark.parametrize(
    ("text", "returncode"),
    [
        ("A tensor is {}ed.\n".format("recie" + "v"), 65),
        ("It behaves as before: its behaviour is initialised in grey.\n", 0),
    ],
    ids=["misspelt", "British"],
)
def test_a_misspelt_word_fails(command, tmp_path, text, returncode):
    page = tmp_path / "page.md"
    page.write_text(text)
    done = subprocess.run([*command[0], page], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == returncode, done.stdout + done.stderr


def test_the_command_is_that_of_this_python(command):
    assert command[0] == [sys.executable, "-m", "codespell_lib"]


@pytest.mark.extended
class TestWords:
    """The words of docs/style.md that tools/words.py finds."""

    @pytest.fixture
    def command(self):
        (found,) = [command for command in commands() if command[1] == "tools/words.py"]
        assert {"README.md", "docs/tutorials/numpy-code.ipynb", "tests/conftest.py", "csrc/layout.cpp"} < set(found[2:])
        return found[:2]

    @pytest.fixture
    def said(self, command, tmp_path):
        """What the tool says of a file with this text, without the file's name."""

        def check(name, text):
            (tmp_path / name).write_text(text)
            done = subprocess.run([*command, tmp_path / name], cwd=ROOT, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (bool(done.stdout), "")
            return done.stdout.replace(f"{tmp_path / name}:", "").splitlines()

        return check

    def test_a_page(self, said):
        assert said("page.md", "One.\nTried in\nvain.\n") == ["2: 'in vain': write without success"]
        text = 'A `refuse` and a "refuse".\n\n```python\nrefuse()\n```\nAs everywhere, maintained.\n'
        assert said("page.md", text) == []

    def test_comments_and_docstrings(self, said):
        text = 'def refuse():\n    """{}s."""\n    refuse("{}")  # {}d\n'.replace("{}", "refuse")
        assert [line.partition(": write")[0] for line in said("module.pyx", text)] == ["2: 'refuses'", "3: 'refused'"]
        found = said("header.h", "int anew;\n/* Read,\n * and anew. */\n// As\n// ever.\n")
        assert found == ["3: 'anew': write again", "4: 'As ever': write as usual"]

    def test_messages(self, command, tmp_path):
        """The strings of these folders, without single words, which are values. Two literals may be one message."""
        message = """fail("as told "\n     "by {}d", "{}", "'{}' or");\n""".replace("{}", "refuse")
        all_of_them = ["1: 'told by'", "2: 'refused'"]
        for folder, found in (("csrc", all_of_them), ("interop/cython", all_of_them), ("tests", [])):
            (tmp_path / folder).mkdir(parents=True)
            (tmp_path / folder / "a.cpp").write_text(message)
            words = [command[0], ROOT / command[1], f"{folder}/a.cpp"]
            done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
            assert [line.partition(": write")[0].partition(":")[2] for line in done.stdout.splitlines()] == found

    def test_every_phrase_of_the_table(self, said):
        phrases = list(load_script(ROOT / "tools" / "words.py").words())
        assert {"tell by", "look at", "asked for", "mend", "as ever"} < set(phrases)
        found = said("page.md", "".join(f"So {phrase}.\n" for phrase in phrases))
        assert [line.partition(": write")[0] for line in found] == [
            f"{number}: '{phrase}'" for number, phrase in enumerate(phrases, 1)
        ]

    def test_endings(self, said):
        phrases = ("tells by", "looks at", "looking at", "looked at", "standing in", "stood in", "lies in", "mended")
        found = said("page.md", "".join(f"So {phrase}.\n" for phrase in phrases))
        assert [line.partition(": write")[0] for line in found] == [
            f"{number}: '{phrase}'" for number, phrase in enumerate(phrases, 1)
        ]
