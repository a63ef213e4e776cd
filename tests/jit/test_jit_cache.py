"""What is kept on disk for modules that are compiled while a program runs: how much, what goes, what stays."""

import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

import interop
from interop import __main__ as command_line
from interop.cuda import cache as nvrtc
from interop.cuda.nvrtc import Image
from interop.jit import BuildError, cache, loading
from interop.jit.cache import Entry
from interop.paths import get_cache_dir


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("INTEROP_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("INTEROP_CACHE_LIMIT", raising=False)
    return tmp_path


def entry(kind, key, kilobytes, age):
    """An entry that was used `age` seconds ago."""
    made = Entry(kind, key)
    made.folder.mkdir(parents=True)
    (made.folder / "content").write_bytes(os.urandom(kilobytes << 10))
    used = made.folder.stat().st_mtime - age
    os.utime(made.folder, (used, used))
    return made


@pytest.mark.usefixtures("place")
class TestEviction:
    def test_what_was_used_longest_ago_goes_first(self):
        old, older, new = entry("modules", "a", 100, 20), entry("headers", "b", 100, 30), entry("modules", "c", 100, 10)
        cache.evict(500 << 10)
        assert {*cache.entries()} == {old, older, new}
        cache.evict(250 << 10)
        assert {*cache.entries()} == {old, new}
        old.use()
        cache.evict(150 << 10)
        assert {*cache.entries()} == {old}

    def test_what_is_in_use_stays(self):
        used, free = entry("headers", "a", 100, 20), entry("headers", "b", 100, 10)
        with used.shared():
            cache.evict(0)
            assert {*cache.entries()} == {used}
        assert not free.folder.exists()
        cache.evict(0)
        assert not list(cache.entries())

    def test_the_limit(self, monkeypatch):
        assert cache.limit() == 2 << 30
        for text, size in (("500M", 500 << 20), ("4g", 4 << 30), ("7", 7), ("1K", 1024)):
            monkeypatch.setenv("INTEROP_CACHE_LIMIT", text)
            assert cache.limit() == size
        monkeypatch.setenv("INTEROP_CACHE_LIMIT", "much")
        with pytest.raises(ValueError, match="must be a number of bytes, such as 500M or 4G, got 'much'"):
            interop.load_inline("x = 1\n")


@pytest.mark.usefixtures("place")
class TestCommand:
    def run(self, capsys, *arguments):
        status = command_line.main(["cache", *arguments])
        out, error = capsys.readouterr()
        return status, out, error

    def test_show(self, place, capsys):
        entry("modules", "a", 1024, 0)
        entry("headers", "b", 2048, 0)
        (place / "nvrtc").mkdir()
        (place / "nvrtc" / "kernel").write_bytes(bytes(1 << 20))
        for arguments in ((), ("--show",)):
            status, out, _ = self.run(capsys, *arguments)
            assert status == 0
            assert out.startswith(f"{place}: 4.0 MiB\n     1.0 MiB modules (1)\n")
            assert "2.0 MiB precompiled headers (1)" in out
            assert "1.0 MiB kernels compiled by NVRTC (1)" in out
            assert "Beyond 2048.0 MiB" in out

    def test_clear(self, place, capsys):
        used = entry("headers", "b", 1024, 0)
        entry("modules", "a", 1024, 0)
        (place / "nvrtc").mkdir()
        with used.shared():
            assert self.run(capsys, "--clear")[:2] == (0, "removed 1.0 MiB; 1 entries are in use and stay\n")
        assert self.run(capsys, "--clear")[:2] == (0, "removed 1.0 MiB\n")
        assert not list(cache.entries())
        assert not (place / "nvrtc").exists()

    def test_a_cache_that_there_is_not(self, capsys):
        assert self.run(capsys)[0] == 0
        assert self.run(capsys, "--clear")[:2] == (0, "removed 0.0 MiB\n")

    @pytest.mark.parametrize("arguments", [["--nonsense"], ["--show", "--clear"]])
    def test_wrong_arguments(self, capsys, arguments):
        status, out, error = self.run(capsys, *arguments)
        assert (status, out) == (2, "")
        assert error.startswith("error: ")


def test_what_is_built_already_needs_no_room_to_write(jit_cache, monkeypatch):
    """Nor a compiler that works."""
    module = interop.load_inline("x = 1\n", name="kept")
    assert interop.load_inline("x = 1\n", name="kept") is module
    monkeypatch.setattr(cache.Entry, "exclusive", lambda *_: pytest.fail("it was locked"))
    assert interop.load_inline("x = 1\n", name="kept") is module


@pytest.mark.usefixtures("jit_cache")
def test_a_module_that_another_process_removes_is_built_again(monkeypatch):
    removed = []

    def remove_once(name, path, origin):
        if not removed:
            removed.append(path)
            shutil.rmtree(path.parent)
        return import_from(name, path, origin)

    import_from = loading.import_from
    monkeypatch.setattr(loading, "import_from", remove_once)
    assert interop.load_inline("x = 1\n", name="taken_away", force=True).x == 1
    assert len(removed) == 1


@pytest.mark.usefixtures("jit_cache")
def test_what_was_just_built_is_not_removed(monkeypatch):
    """However little may be kept."""
    monkeypatch.setattr(
        loading, "evict", lambda _: [one.remove() for one in cache.entries() if one.key.startswith("just_built")]
    )
    module = interop.load_inline("x = 1\n", name="just_built", force=True)
    assert os.path.exists(module.__file__)


class TestPrivacy:
    """Whoever can write to the cache can have code run by whoever reads it."""

    def load(self):
        return interop.load_inline("x = 1\n", name="private")

    def test_it_is_made_for_one_user(self, place, monkeypatch):
        monkeypatch.setenv("INTEROP_CACHE_DIR", str(place / "parent" / "new"))
        before = os.umask(0o002)
        try:
            cache.prepare("private")
        finally:
            os.umask(before)
        for folder in (place / "parent" / "new", place / "parent" / "new" / "jit"):
            assert folder.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("below", [".", "jit"])
    @pytest.mark.parametrize("mode", [0o770, 0o702, 0o775])
    def test_one_that_others_can_write(self, place, below, mode):
        """As an earlier version has made it under the umask 002."""
        (place / "jit").mkdir(mode=0o700)
        (place / below).chmod(mode)
        cache.prepare("private")
        assert (place / below).stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("below", ["modules", "objects/key"])
    def test_one_with_folders_that_others_can_write(self, place, below):
        (place / "jit" / below).mkdir(parents=True)
        (place / "jit").chmod(0o755)
        cache.prepare("private")
        assert (place / "jit").stat().st_mode & 0o777 == 0o755
        (place / "jit" / below).chmod(0o775)
        cache.prepare("private")
        assert (place / "jit").stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("mode", [0o1777, 0o1700, 0o777])
    def test_one_that_is_shared(self, place, mode):
        """Such as /tmp, or a folder with the files of a project."""
        (place / "file").touch()
        nvrtc.write("kernel", Image(b"code", (), {}, ""))
        assert nvrtc.read("kernel")
        place.chmod(mode)
        with pytest.raises(BuildError, match=rf"others use {place}: name a folder below it$") as raised:
            self.load()
        assert "chmod" not in str(raised.value)
        assert place.stat().st_mode & 0o7777 == mode
        assert nvrtc.read("kernel") is None

    def test_one_of_another_user(self, place):
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(place, 12345, -1)
        with pytest.raises(
            BuildError, match=r"belongs to user 12345, who .*you are root; name .*INTEROP_CACHE"
        ) as raised:
            self.load()
        assert not re.search("chmod|cannot be built", str(raised.value))
        assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)

    def test_a_home_that_is_empty(self, tmp_path, monkeypatch):
        for name in ("INTEROP_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", "")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        assert get_cache_dir() == tmp_path / f"torch-interop-{os.getuid()}"

    def test_a_user_without_a_home(self, tmp_path):
        """As in a container that is run under a number."""
        code = (
            "import os, pwd, tempfile\n"
            "def unknown(number): raise KeyError(number)\n"
            "pwd.getpwuid = unknown\n"
            "from interop.paths import get_cache_dir\nprint(get_cache_dir())"
        )
        environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
        environment.pop("INTEROP_CACHE_DIR", None)
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment | {"TMPDIR": str(tmp_path)},
        )
        assert done.stdout == f"{tmp_path}/torch-interop-{os.getuid()}\n", done.stderr
