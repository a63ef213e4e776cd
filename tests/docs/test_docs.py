"""The documentation as a whole.

A test runs every block of code, links have targets, figures come from results, and the site builds without warnings and
needs no network.
"""

import ast
import html.parser
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import load_script
from doc_blocks import DOCS, ROOT, blocks
from search_words import WORDS

import interop
import interop.build
import interop.cuda
import interop.jit
from experiments.harness import age

GUIDES = [
    "README.md",
    *(f"docs/{path.relative_to(DOCS)}" for path in sorted([*DOCS.glob("*.md"), *DOCS.glob("from/*.md")])),
]
EXPERIMENTS = [str(path.relative_to(ROOT)) for path in sorted((DOCS / "experiments").glob("*/README.md"))]
OTHERS = ["CONTRIBUTING.md", "SECURITY.md", "docs/experiments/index.md", "docs/tutorials/index.md"]
TUTORIALS = [str(path.relative_to(ROOT)) for path in sorted((DOCS / "tutorials").glob("*.ipynb"))]

# The test that runs all blocks of a language in a page. A block that no test runs has the comment
# `<!-- not run: reason -->` in the line above it.
CLAIMS = {
    ("README.md", "cython"): "test_readme.py::test_the_example_builds_and_runs",
    ("README.md", "python"): "test_readme.py::test_the_example_builds_and_runs",
    ("README.md", "sh"): "test_readme.py::test_the_commands",
    ("docs/bridges.md", "cython"): "test_bridges_guide.py::test_blocks_of_cython",
    ("docs/bridges.md", "python"): "test_bridges_guide.py::test_blocks_of_python",
    ("docs/building-guide.md", ""): "test_doctor.py::test_the_words_in_the_guide",
    ("docs/building-guide.md", "cmake"): "test_building_guide.py::test_files",
    ("docs/building-guide.md", "python"): "test_building_guide.py::test_files",
    ("docs/building-guide.md", "toml"): "test_building_guide.py::test_files",
    ("docs/building-guide.md", "sh"): "test_building_guide.py::test_on_a_command_line",
    ("docs/cimport-guide.md", "cython"): "test_guide.py::test_statements",
    ("docs/cuda-guide.md", "cpp"): "test_cuda_build.py::test_it_builds_and_says_what_is_wrong",
    ("docs/cuda-guide.md", "cuda"): "test_cuda_build.py::test_it_builds_and_says_what_is_wrong",
    ("docs/cuda-guide.md", "cython"): "test_cuda_build.py::test_it_builds_and_says_what_is_wrong",
    ("docs/cuda-guide.md", "python"): "test_cuda_build.py::test_it_builds_and_says_what_is_wrong",
    ("docs/cuda-nvrtc-guide.md", "cython"): "test_nvrtc.py::test_guide",
    ("docs/cuda-nvrtc-guide.md", "python"): "test_nvrtc.py::test_guide",
    ("docs/cuda-nvrtc-guide.md", "text"): "test_nvrtc.py::test_message_in_the_guide",
    ("docs/cuda-streams-guide.md", "cython"): "test_guide.py::test_streams",
    ("docs/from/cpp-extension.md", "cpp"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/cpp-extension.md", "cython"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/cpp-extension.md", "python"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/cython-numpy.md", "cython"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/cython-numpy.md", "python"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/nanobind.md", "cpp"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/nanobind.md", "cython"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/nanobind.md", "python"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/pybind11.md", "cpp"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/pybind11.md", "cython"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/pybind11.md", "python"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/tvm-ffi.md", "cpp"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/tvm-ffi.md", "cython"): "test_coming_from.py::test_both_do_the_same",
    ("docs/from/tvm-ffi.md", "python"): "test_coming_from.py::test_both_do_the_same",
    ("docs/index.md", "cython"): "test_readme.py::test_the_site_begins_with_the_same_example",
    ("docs/index.md", "python"): "test_readme.py::test_the_site_begins_with_the_same_example",
    ("docs/jit-guide.md", "cpp"): "test_jit_guide.py::test_blocks_of_python",
    ("docs/jit-guide.md", "cython"): "test_jit_guide.py::test_blocks_of_python",
    ("docs/jit-guide.md", "ipython"): "test_jit_guide.py::test_blocks_of_a_notebook",
    ("docs/jit-guide.md", "python"): "test_jit_guide.py::test_blocks_of_python",
    ("docs/jit-guide.md", "sh"): "test_jit_guide.py::test_nothing_is_left_out",
    ("docs/jit-guide.md", "text"): "test_jit_guide.py::test_blocks_of_python",
    ("docs/kernels-guide.md", "cython"): "test_guide.py::test_kernels",
    ("docs/operators-guide.md", "cython"): "test_guide.py::test_operators",
    ("docs/operators-guide.md", "python"): "test_guide.py::test_python_about_operators",
    ("docs/porting-guide.md", "cpp"): "test_porting_guide.py::test_both_do_the_same",
    ("docs/porting-guide.md", "cython"): "test_porting_guide.py::test_both_do_the_same",
    ("docs/libraries.md", "python"): "test_libraries_guide.py::test_blocks",
    ("docs/stable-guide.md", "cython"): "test_stable_guide.py::test_blocks",
    ("docs/start.md", "cython"): "test_start.py::test_the_tour",
    ("docs/start.md", "python"): "test_start.py::test_the_tour",
    ("docs/start.md", "sh"): "test_start.py::test_the_commands",
    ("docs/troubleshooting.md", "sh"): "test_troubleshooting.py::test_isolation",
    ("docs/troubleshooting.md", "text"): "test_troubleshooting.py::test_every_message_is_provoked",
    ("docs/with-arrays.md", "python"): "test_with_arrays_guide.py::test_blocks",
}


def unclaimed(page):
    return [
        str(block)
        for block in blocks(page)
        if (page, block.language) not in CLAIMS and not re.match(r"not run: .{10}", block.note)
    ]


class TestBlocks:
    @pytest.mark.parametrize("page", GUIDES)
    def test_each_is_run(self, page):
        nobody = unclaimed(page)
        assert not nobody, f"no test runs {', '.join(nobody)}; write one, and name it in CLAIMS"

    @pytest.mark.parametrize(("page", "language"), CLAIMS)
    def test_claims_are_true(self, page, language):
        """As far as can be checked from outside: the test exists, in a file that names the page."""
        assert language in {block.language for block in blocks(page)}
        file, _, name = CLAIMS[page, language].partition("::")
        (path,) = (ROOT / "tests").glob(f"*/{file}")
        text = path.read_text(encoding="utf-8")
        assert name in {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
        assert Path(page).stem in text

    def test_a_block_that_nobody_runs_is_found(self, tmp_path):
        page = str(tmp_path / "page.md")
        Path(page).write_text(
            "# Page\n\n```python\none\n```\n\n<!-- not run: for a good reason -->\n```sh\ntwo\n```\n\n"
            "```{toctree}\nthree\n```\n\n- item\n\n  ```\n  four\n  ```\n"
        )
        assert unclaimed(page) == [f"{page}:3, python", f"{page}:18, no language"]
        assert [block.code for block in blocks(page)] == ["one\n", "two\n", "four\n"]


def prose(page):
    """A page without its blocks, inline code and generated parts, with the same number of lines."""

    def blank(found):
        return "\n" * found[0].count("\n")

    text = (ROOT / page).read_text(encoding="utf-8")
    if text.startswith("<!-- Generated by"):
        return ""
    for pattern in (
        r"<!-- (?:answer|results|experiments|figures|cases|types): .*?<!-- end of \w+ -->",
        r"^```.*?^```$",
        r"`[^`]*`",
    ):
        text = re.sub(pattern, blank, text, flags=re.DOTALL | re.MULTILINE)
    return text


@pytest.fixture(scope="module")
def links():
    """The tool that `make lint` runs over all pages."""
    return load_script(ROOT / "tools" / "links.py")


@pytest.mark.parametrize("page", [*GUIDES, *EXPERIMENTS, *OTHERS, *TUTORIALS])
def test_links_lead_somewhere(links, page):
    """Links work on GitHub too: they are relative paths to files of the checkout. Sphinx checks its own links."""
    assert list(links.broken(ROOT / page)) == []


def test_a_link_that_leads_nowhere_is_found(links, tmp_path, capsys):
    page, notebook, other = (tmp_path / name for name in ("page.md", "notebook.ipynb", "other.md"))
    other.write_text("# A `title`, and more\n\n```python\n# A comment\n```\n")
    page.write_text(
        "[a](other.md), [b](other.md#a-title-and-more), [c](https://b.example/c), `[d](e.md)`\n[f](stylee.md)\n"
        "```text\n[g](h.md)\n```\n![i](j.svg) [k](other.md#a-comment) [l](#m)\n"
        '[![o](other.md)](p.md) <img width="1" src="q.svg"> [r](s.md "title")\n'
    )
    cells = [{"cell_type": kind, "source": ["[n]", f"({kind}.md)"]} for kind in ("code", "markdown")]
    notebook.write_text(json.dumps({"cells": cells}))
    assert links.main([str(page), str(notebook)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{page}: links to stylee.md, which is not there",
        f"{page}: links to j.svg, which is not there",
        f"{page}: links to other.md#a-comment; other.md has a-title-and-more",
        f"{page}: links to #m; page.md has ",
        *(f"{page}: links to {name}, which is not there" for name in ("p.md", "q.svg", "s.md")),
        f"{notebook}: links to markdown.md, which is not there",
    ]
    assert links.main([str(other)]) == 0


def test_lint_reads_the_links_of_every_page():
    commands = load_script(ROOT / "tools" / "lint.py").commands(fix=False)
    (pages,) = [command[2:] for command in commands if command[1] == "tools/links.py"]
    assert {*GUIDES, *EXPERIMENTS, *OTHERS, *TUTORIALS} <= {*pages}


UNIT = (
    "ns|us|µs|ms|s|seconds?|min|minutes?|[kKMG]i?B(?:/s)?|times|%|percent|instructions"
    "|\N{MULTIPLICATION SIGN}|x(?!\\s*\\d)"
)
FIGURE = re.compile(rf"(?<![\w.,-])\d[\d.,]*(?: to \d[\d.,]*)?\s?(?:{UNIT})(?!\w)")

# Figures in prose that were chosen, not measured.
CHOSEN = {
    "docs/jit-guide.md": {"2 GiB"},  # the limit of the cache, as in interop/jit/cache_folder.py
    "docs/experiments/gil/README.md": {"5 ms"},  # CPython's default of sys.setswitchinterval()
}
BY_HAND = {"CONTRIBUTING.md": re.compile(r"^On 2 cores, .*?\n\n", re.DOTALL | re.MULTILINE)}
"""The paragraphs with figures that no results file has: how long the checks take."""
SETTINGS = re.compile(r"^## (?:Setup|Method)\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
"""The sections of an experiment's page on its measurement: rounds, sizes, the duration of a block of calls."""


def figures(page):
    text = prose(page)
    if page in EXPERIMENTS:
        text = SETTINGS.sub("", text)
    if page in BY_HAND:
        text = BY_HAND[page].sub("", text)
    return [found[0] for found in FIGURE.finditer(text) if found[0] not in CHOSEN.get(page, ())]


@pytest.mark.parametrize("page", [*GUIDES, *EXPERIMENTS, *OTHERS])
def test_figures_come_from_results(page):
    """Figures are only between the marks of generated parts; elsewhere a page links to the experiment."""
    assert figures(page) == []


@pytest.mark.parametrize("page", BY_HAND)
def test_each_figure_by_hand_has_its_date(page):
    (paragraph,) = BY_HAND[page].findall((ROOT / page).read_text(encoding="utf-8"))
    sentences = [sentence for sentence in re.split(r"\.\s", paragraph) if FIGURE.search(sentence)]
    assert sentences
    assert not [sentence for sentence in sentences if not re.search(r"\d{4}-\d\d-\d\d", sentence)]


@pytest.mark.parametrize(
    "text", ["takes 8 s.", "15.7 min", "1.5 to 3 times", "a 20% share", "140 MB", "3 GB/s", "16.7 ns", "5x"]
)
def test_figures_are_found(text):
    assert FIGURE.search(text)


@pytest.mark.parametrize(
    "text", ["torch 2.13.0", "2 x 3 floats", "C++20", "64 dimensions", "sm_90", "100,000 calls", "11s"]
)
def test_other_numbers_are_not(text):
    assert not FIGURE.search(text.replace("11s", "level-11 s"))


@pytest.fixture(scope="module")
def table():
    return load_script(ROOT / "tools" / "readme_table.py")


class TestTable:
    def test_pages_are_up_to_date(self):
        command = [sys.executable, ROOT / "tools" / "readme_table.py", "--check"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")

    def test_it_notices_a_change(self, table, tmp_path, monkeypatch, capsys):
        page = tmp_path / "README.md"
        page.write_text(f"before\n\n{table.BEGIN}\n\n| old |\n\n{table.END}\n\nafter\n")
        monkeypatch.setattr(table, "ROOT", tmp_path)
        monkeypatch.setattr(table, "PAGES", [page])
        monkeypatch.setattr(sys, "argv", ["readme_table.py", "--check"])
        assert table.main() == 1
        assert "out of date: README.md; run: python tools/readme_table.py" in capsys.readouterr().err
        monkeypatch.setattr(sys, "argv", ["readme_table.py"])
        assert table.main() == 0
        assert page.read_text().startswith("before\n\n<!-- figures")
        assert page.read_text().endswith("\n\nafter\n")
        assert "| old |" not in page.read_text()

    def test_the_picture_is_drawn_again_when_a_figure_changes(self, table, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(table, "ROOT", tmp_path)
        monkeypatch.setattr(table, "PAGES", [])
        monkeypatch.setattr(table, "PICTURE", tmp_path / "costs.svg")
        monkeypatch.setattr(sys, "argv", ["readme_table.py", "--check"])
        assert table.main() == 1
        assert "out of date: costs.svg; run" in capsys.readouterr().err
        table.draw()
        assert table.main() == 0
        times = {"1 tensor": {"Cython": {"median": 5.0}, "nanobind": {"median": 4.0}}}
        monkeypatch.setattr(table, "newest", lambda name: {"times": times} if name == "crossing" else {})
        assert table.bars()["A call with one tensor, ns"] == [("nanobind", 4.0), ("torch-interop", 5.0)]
        assert table.main() == 1
        table.draw()  # also if nothing is recorded
        assert table.main() == 0

    def test_a_call_with_a_tensor_is_preferred_to_numel(self, table):
        times = {
            "numel": {"Cython": {"median": 18.2}},
            "1 tensor": {"Cython": {"median": 20.4}, "nanobind": {"median": 7}},
        }
        what = "a call that counts a tensor's elements, ns"
        assert table.tools_table({"times": times}, {})[2] == f"| {what} | 20 | - | 7 | - | - |"
        del times["1 tensor"]
        assert table.tools_table({"times": times}, {})[2] == f"| {what} | 18 | - | - | - | - |"

    def test_nothing_recorded(self, table):
        assert all(line.count("| -") >= 2 for line in table.conversions_table({})[2:])
        assert "nothing is recorded yet: [crossing]" in table.sources({"crossing": {}}, ROOT / "README.md")

    def test_each_figure_has_its_machine_and_date(self, table):
        for page in table.PAGES:
            (line,) = re.findall(r"^Times are medians\. .*$", page.read_text(), re.MULTILINE)
            for name in (*table.EXPERIMENTS_SHOWN, *table.ANSWERS):
                old = "†" if age.BEGIN in table.readme(name) else ""
                assert f"/{name}/README.md) ({table.newest(name)['date']}{old})" in line

    def test_an_old_result_is_called_old(self, table, tmp_path, monkeypatch):
        monkeypatch.setattr(table, "EXPERIMENTS", tmp_path)
        result = {"machine": {"cpu": "abacus", "cores": 1}, "versions": {"torch": "2.13"}, "date": "2026-01-01"}
        for note, said in (("", ")."), (f"*{age.BEGIN}since then.*", "†). † older than the code that it measures.")):
            (tmp_path / "a").mkdir(exist_ok=True)
            (tmp_path / "a" / "README.md").write_text(f"# A\n\n{note}\n")
            assert table.sources({"a": result}, ROOT / "README.md").endswith(f"/a/README.md) (2026-01-01{said}")

    def test_the_range_has_the_slowest_size(self, table):
        times = {"Python": 10.0, "C++": 9.0, "Cython": 9.0, "Cython fused": 5.0}
        slow = {**times, "Cython": {"median": 13.3}}
        said = table.ranges({"times": {"small": {"1 thread": {"both": times}}, "wide": {"1 thread": {"both": slow}}}})
        assert "all 2 sizes" in said
        assert "Cython 0.90 to 1.33, C++ 0.90 to 0.90, the fused cell 0.50 to 0.50" in said


class Page(html.parser.HTMLParser):
    """The URLs that a browser loads for a page, and its text."""

    def __init__(self, path):
        super().__init__()
        self.loaded, self.text = [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "link" and attributes.get("rel") in ("search", "next", "prev", "index", "canonical"):
            return
        if tag != "a":
            self.loaded += [attributes[name] for name in ("src", "href", "data", "srcset") if attributes.get(name)]

    def handle_data(self, data):
        self.text.append(data)


def searched(index, text):
    """The pages that Sphinx's search finds.

    They have all words of `text`, an entry of the index with it, or an object with this name.
    """
    stem = importlib.import_module("sphinx.search.en").SearchEnglish({}).stem
    found = []
    for word in re.findall(r"\w+", text.lower()):
        pages = [index[table].get(form, []) for table in ("terms", "titleterms") for form in (word, stem(word))]
        found.append({page for some in pages for page in ([some] if isinstance(some, int) else some)})
    result = set.intersection(*found)
    for entry, places in index["indexentries"].items():
        result |= {page for page, *_ in places if text in entry}
    for inside, objects in index["objects"].items():
        result |= {page for page, *_, name in objects if text in f"{inside}.{name}".lower()}
    return {index["docnames"][page] for page in result}


def weight(path):
    """Kilobytes of a page and of the styles and scripts that it loads."""
    files = {path.parent / re.sub(r"[?#].*", "", url) for url in Page(path).loaded}
    loaded = [file for file in files if file.suffix in {".css", ".js"}]
    return round(sum(file.stat().st_size for file in (path, *loaded)) / 1000)


@pytest.fixture(scope="module")
def site():
    """The site, as `make site` builds it. Pages that are up to date stay as they are."""
    for name in ("sphinx", "myst_parser", "furo", "sphinx_copybutton"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install -r requirements/docs.txt")
    (command,) = re.findall(
        r"^site:.*\n\t\$\(PY\) (.*) docs build/docs$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    folder = ROOT / "build" / "docs"
    words = [sys.executable, *command.replace("--fresh-env ", "").split(), DOCS, folder]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
@pytest.mark.extended
class TestSite:
    def test_nothing_is_loaded_from_the_network(self, site):
        pages = list(site.rglob("*.html"))
        assert len(pages) > 25
        for path in pages:
            away = [url for url in Page(path).loaded if re.match(r"(?:https?:)?//", url)]
            assert not away, f"{path.relative_to(site)} loads {away}"
        for path in (site / "_static").rglob("*.css"):
            urls = re.findall(r"(?:@import|url\()\s*[\"']?((?:https?:)?//[^\"')]*)", path.read_text(encoding="utf-8"))
            assert not urls, f"{path.relative_to(site)} loads {urls}"

    def test_every_page_is_searched(self, site):
        index = (site / "searchindex.js").read_text(encoding="utf-8")
        for_cython = DOCS / "upstream" / "README.md"  # not a page of the site
        for path in set(DOCS.rglob("*.md")) - {for_cython}:
            assert f'"{path.relative_to(DOCS).with_suffix("")}"' in index

    def test_what_readers_type_is_found(self, site):
        """The search's index has each page; `make site-check` checks which results come first."""
        text = (site / "searchindex.js").read_text(encoding="utf-8")
        index = json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))
        assert len(WORDS) >= 20
        lost = {word: page for word, page in WORDS.items() if page not in searched(index, word)}
        assert not lost, f"the search finds no such page: {lost}"
        assert searched(index, "nonesuch") == set()
        everywhere = {"Setup", "What it does not show"} & set(index["alltitles"])
        assert not everywhere, f"the search sees headings that all experiments have: {everywhere}"

    def test_no_page_is_heavy(self, site):
        """The limit includes styles and scripts, but not pictures."""
        weights = {path.relative_to(site): weight(path) for path in site.rglob("*.html")}
        heavy = {str(path): kilobytes for path, kilobytes in weights.items() if kilobytes > 300}
        assert not heavy, f"kilobytes: {heavy}"

    def test_every_public_name_has_its_place(self, site):
        text = (site / "api.html").read_text(encoding="utf-8")
        names = [f"interop.{name}" for name in interop.__all__ if name != "__version__"]
        for module in (interop.build, interop.jit, interop.cuda):
            names += [f"{module.__name__}.{name}" for name in module.__all__]
        again = {"interop.jit.load", "interop.jit.load_inline"}  # these are interop.load and interop.load_inline
        missing = [name for name in names if f'id="{name}"' not in text and name not in again]
        assert not missing

    def test_every_experiment_is_listed_with_its_picture(self, site):
        page = site / "experiments" / "index.html"
        text, loaded = " ".join("".join(Page(page).text).split()), Page(page).loaded
        for readme in EXPERIMENTS:
            about = (ROOT / readme).read_text(encoding="utf-8").partition("## Question\n\n")[2]
            question = " ".join(about.partition("?")[0].replace("`", "").split())
            assert f"{question}?" in text
        pictures = [page.parent / path for path in loaded if "_images" in path]
        recorded = {path.parent for path in (DOCS / "experiments").glob("*/results/*.json")}
        assert len(pictures) >= len(recorded)
        assert all(path.exists() for path in pictures)


UNAVAILABLE = 77

WRONG = """<!doctype html><html lang="en"><head><title>Wrong</title></head><body><article>
<h1>Wrong</h1>
<p style="color: #ccc; background: #fff">Hardly seen.</p>
<p style="width: 900px">Too wide.</p>
<p style="width: 100px; overflow-x: auto"><span style="display: block; width: 300px">Scrolls.</span></p>
<pre style="width: 100px; overflow-x: auto">Code may scroll, if the keyboard reaches it.</pre>
<button style="outline: none">No outline</button> <img src="none.png">
<a href="#" style="position: absolute; left: -300px">Outside</a>
<label for="__toc" role="button">On this page</label>
<label for="__navigation"><span role="button" tabindex="0">Menu</span></label>
<table style="display: block"><tr role="row"><td style="display: block">Cell</td><td>Cell</td></tr></table>
<table><thead style="display: none"><tr><th role="columnheader" style="display: block">Head</th></tr></thead></table>
<div class="toc-drawer" style="position: fixed; left: -300px; visibility: hidden"><a href="#">Closed</a></div>
<div class="sidebar-drawer" style="position: fixed; left: -300px; visibility: hidden"><a href="#">Closed</a></div>
</article></body></html>
"""


def check(*arguments):
    """The exit status and lines of the tool. Skips the test if there is no browser or no axe-core."""
    command = [sys.executable, ROOT / "tools" / "site_check.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800)
    if done.returncode == UNAVAILABLE:
        pytest.skip(f"{done.stderr.strip()}; `make site-check` fetches axe-core")
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


class TestBrowser:
    """The tool of `make site-check`, on the site and on a page with every fault."""

    @pytest.mark.slow
    def test_every_page_and_the_search(self, site):
        status, lines = check("--site", site)
        assert (status, lines) == (0, [f"site-check: {len(list(site.rglob('*.html')))} pages, no findings"])

    @pytest.mark.slow
    def test_what_is_wrong_is_found(self, tmp_path):
        (tmp_path / "wrong.html").write_text(WRONG)
        status, lines = check("--site", tmp_path, "wrong.html")
        text = "\n".join(lines)
        assert status == 1
        assert "wrong.html: at 400 pixels the page scrolls sideways: p. Too wide." in lines
        assert "wrong.html: at 800 pixels the page scrolls sideways: p. Too wide." in lines
        assert "at 1280 pixels the page scrolls" not in text
        assert "wrong.html: at 1280 pixels this scrolls sideways: p." in lines
        assert "color-contrast" in text
        assert "scrollable-region-focusable" in text
        assert "image-alt" in text
        assert "aria-allowed-role" in text
        for pixels in (400, 800, 1280):
            where = f"wrong.html: at {pixels} pixels"
            assert f"{where} the focus does not show: button. No outline" in lines
            assert f"{where} the focus goes to what is not seen, 1 times: a. Outside" in lines
            assert f"{where} the keyboard does not reach what opens .toc-drawer" in lines
            assert f"{where} Enter does not open .sidebar-drawer and move the focus into it" in lines
            assert f"{where} what opens .sidebar-drawer is no button that has a name and says" in text
            assert f"{where} 3 parts of tables lose their role: table Cell" in text

    def test_what_is_missing_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CHROMIUM", raising=False)
        command = [sys.executable, ROOT / "tools" / "site_check.py", "--axe", tmp_path / "axe.min.js"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (UNAVAILABLE, "")
        said = f"there is no Chromium, on PATH or named by CHROMIUM and no axe-core in {tmp_path}/axe.min.js"
        assert done.stderr == f"site-check: {said}\n"
        done = subprocess.run([*command, "--if-possible"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"site-check: not checked: {said}\n"


def test_every_promise_is_held_by_a_test():
    """Every function and class that the page of promises names exists in its file."""
    cells = [
        line.rsplit("|", 2)[1] for line in (DOCS / "promises.md").read_text().splitlines() if line.startswith("| ")
    ]
    claims = [claim for cell in cells for claim in re.findall(r"`([^`]+)`", cell) if not claim.startswith("make ")]
    assert len(claims) > 20
    folder = ""
    for claim in claims:
        path, _, name = claim.partition("::")
        folder = path or folder
        assert name, f"{claim}: name a function or a class"
        assert is_defined(name, ast.parse((ROOT / "tests" / folder).read_text())), claim


def is_defined(name, scope):
    """Whether a module or a class has a function or class called `name`, such as "test_a" or "TestA::test_b"."""
    first, _, rest = name.partition("::")
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [one for one in scope.body if isinstance(one, kinds) and one.name == first]
    return any(is_defined(rest, one) if rest else True for one in found)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("test_a", True), ("TestA", True), ("TestA::test_b", True)),
        *(("test_b", False), ("TestA::test_a", False), ("TestB::test_b", False), ("test_a::test_b", False)),
    ],
)
def test_a_promise_names_the_class_of_its_test(name, expected):
    module = "def test_a(): ...\nclass TestA:\n    def test_b(self): ...\nclass TestB: ...\n"
    assert is_defined(name, ast.parse(module)) is expected
