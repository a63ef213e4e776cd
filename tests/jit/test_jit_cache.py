"""The on-disk cache for modules that are compiled at run time: its limit, eviction, damage and privacy."""

import errno
import grp
import json
import os
import pickle
import pwd
import re
import shlex
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import interop
from interop import Error, private
from interop import __main__ as command_line
from interop.cuda import cache as nvrtc
from interop.cuda.nvrtc import Image
from interop.jit import BuildError, cache_folder, loading, manifest, precompiled
from interop.jit.cache_folder import Entry
from interop.jit.diagnostics import CacheError, explain_os_error
from interop.paths import get_cache_dir


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setattr(private, "_notes", {})
    monkeypatch.setenv("INTEROP_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("INTEROP_CACHE_LIMIT", raising=False)
    return tmp_path


def entry(kind, key, kilobytes, age):
    """An entry that was last used `age` seconds ago."""
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
        cache_folder.evict(500 << 10)
        assert {*cache_folder.entries()} == {old, older, new}
        cache_folder.evict(250 << 10)
        assert {*cache_folder.entries()} == {old, new}
        old.use()
        cache_folder.evict(150 << 10)
        assert {*cache_folder.entries()} == {old}

    def test_what_is_in_use_stays(self):
        used, free = entry("headers", "a", 100, 20), entry("headers", "b", 100, 10)
        with used.shared():
            cache_folder.evict(0)
            assert {*cache_folder.entries()} == {used}
        assert not free.folder.exists()
        cache_folder.evict(0)
        assert not list(cache_folder.entries())

    def test_the_limit(self, monkeypatch):
        assert cache_folder.limit() == 2 << 30
        for text, size in (("500M", 500 << 20), ("4g", 4 << 30), ("7", 7), ("1K", 1024)):
            monkeypatch.setenv("INTEROP_CACHE_LIMIT", text)
            assert cache_folder.limit() == size
        monkeypatch.setenv("INTEROP_CACHE_LIMIT", "much")
        with pytest.raises(ValueError, match="must be a number of bytes, such as 500M or 4G, got 'much'"):
            interop.load_inline("x = 1\n")


FOREIGN = ["file", "folder", "full", "link", "nothing", "loop", "pipe"]


def put(kind, path, outside):
    """Put something at `path` that this package does not write there. Links lead to `outside`, a folder, or nowhere."""
    private.remove(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        path.write_bytes(b"foreign")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind in ("folder", "full"):
        path.mkdir()
        (path / "file").touch() if kind == "full" else None
    else:
        path.symlink_to({"link": outside, "nothing": outside / "nothing", "loop": path}[kind])


class TestLocks:
    @pytest.fixture
    def outside(self, tmp_path_factory):
        """A folder with a file, which must stay."""
        folder = tmp_path_factory.mktemp("outside")
        (folder / "file").write_bytes(b"content")
        yield folder
        assert (folder / "file").read_bytes() == b"content"

    @pytest.mark.parametrize("kind", FOREIGN[1:])
    def test_something_in_the_place_of_a_lock(self, place, outside, kind):
        """A lock replaces it, with one warning."""
        path = place / "locks" / "modules-key"
        put(kind, path, outside)
        with cache_folder.locked(path):
            assert stat.S_ISREG(path.lstat().st_mode)
            with cache_folder.try_lock(path) as free:
                assert not free
        with pytest.warns(UserWarning, match=f"has removed {path}: it was in the place of a lock") as warned:
            private.warn()
        assert len(warned) == 1
        put(kind, path, outside)
        with cache_folder.try_lock(path) as free:
            assert free
            assert stat.S_ISREG(path.lstat().st_mode)
        assert {one.name for one in path.parent.iterdir()} <= {path.name, cache_folder.GUARD}
        private.warn()  # it warns only once

    @pytest.mark.parametrize("kind", ["full", "link"])
    def test_threads_that_find_it_at_once(self, place, outside, kind):
        """None removes the lock of another."""
        path, holders, most = place / "locks" / "modules-key", [], []

        def hold(barrier):
            barrier.wait(60)
            with cache_folder.locked(path):
                holders.append(1)
                most.append(len(holders))
                time.sleep(0.001)
                holders.pop()

        for _ in range(30):
            put(kind, path, outside)
            barrier = threading.Barrier(4)
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(hold, [barrier] * 4))
        assert most == [1] * 120

    def test_what_cannot_be_removed(self, place, outside):
        """The error names it, and what to do."""
        path = place / "locks" / "modules-key"
        put("link", path, outside)
        put("folder", path.with_name(cache_folder.GUARD), outside)
        message = rf"this is not .* remove it: '{path.parent}/{cache_folder.GUARD}'"
        with pytest.raises(OSError, match=message), cache_folder.locked(path):
            raise AssertionError("there is no lock")
        assert path.is_symlink()

    def test_a_link_to_the_lock_itself(self, place):
        """A thread that waits for a lock does not hold it if others lock a new file."""
        path = place / "locks" / "modules-key"
        handle = cache_folder._open_lock(path)
        moved = path.rename(path.with_name("moved"))
        path.symlink_to(moved)
        assert not cache_folder._is_at(path, handle)
        cache_folder._close_lock(handle)

    @pytest.mark.parametrize("kind", FOREIGN[1:])
    def test_clear(self, place, outside, capsys, kind):
        """The command removes all entries, whatever is in the place of their locks."""
        for key in "abc":
            entry("modules", key, 10, 0)
        put(kind, place / "jit" / "locks" / "modules-b", outside)
        assert command_line.main(["cache", "--clear"]) == 0
        assert "removed 0.0 MiB" in capsys.readouterr().out
        assert not list(cache_folder.entries())

    @pytest.mark.parametrize("kind", FOREIGN)
    def test_clear_entries(self, place, outside, kind):
        """The command removes what is in the place of an entry."""
        put(kind, place / "jit" / "modules" / "a", outside)
        assert command_line.main(["cache", "--clear"]) == 0
        assert not list((place / "jit" / "modules").iterdir())


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
        assert not list(cache_folder.entries())
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
    """A built module also loads without a working compiler."""
    module = interop.load_inline("x = 1\n", name="kept")
    assert interop.load_inline("x = 1\n", name="kept") is module
    monkeypatch.setattr(cache_folder.Entry, "exclusive", lambda *_: pytest.fail("it was locked"))
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
def test_a_module_that_is_always_gone(monkeypatch, tmp_path):
    """A load ends, also if it never finds the file that it has built."""
    monkeypatch.setattr(loading, "_current", lambda *_: tmp_path / "no_such.so")
    with pytest.raises(ImportError, match=r"no_such\.so"):
        interop.load_inline("x = 1\n", name="always_gone")


@pytest.mark.usefixtures("jit_cache")
def test_what_was_just_built_is_not_removed(monkeypatch):
    """A new module stays, however small the limit is."""
    monkeypatch.setattr(
        loading, "evict", lambda _: [one.remove() for one in cache_folder.entries() if one.key.startswith("just_built")]
    )
    module = interop.load_inline("x = 1\n", name="just_built", force=True)
    assert os.path.exists(module.__file__)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")

MANIFEST = ("module", "files", "absent", "on_sys_path", "made", "environment")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["cpu", "cuda", "cpv", *MANIFEST]) | st.text(), inner)
    ),
)


@pytest.mark.extended
class TestDamage:
    """Entries that differ from what was written count as missing, with a warning."""

    @pytest.fixture
    def made(self, place):
        """A folder with a finished build, and its manifest."""
        folder = place / "jit" / "objects" / uuid.uuid4().hex
        folder.mkdir(parents=True)
        (folder / "object.o").write_bytes(b"object")
        manifest.write(folder, "object.o", (), time.time())
        return folder, (folder / manifest.NAME).read_bytes()

    @staticmethod
    def is_damaged(folder):
        private._notes.clear()
        assert manifest.find(folder) is None
        with pytest.warns(UserWarning, match=f"has rebuilt {folder}"):
            private.warn()
        assert manifest.find(folder) is None
        private.warn()  # it warns only once
        return True

    def test_as_it_is(self, made):
        folder, data = made
        assert manifest.find(folder).module == "object.o"
        assert {*json.loads(data)} == {"sha256", *MANIFEST}  # so that the other tests edit real fields

    def test_without_a_module(self, made):
        folder, _ = made
        manifest.write(folder, "", (), time.time())
        assert manifest.find(folder).module == ""

    def test_what_does_not_stay_is_not_made_without_end(self, place, monkeypatch):
        """As on a disk that loses what is written."""
        made = []
        monkeypatch.setattr(manifest, "find", lambda folder: None)
        entry = precompiled._get_or_make(Entry("headers", uuid.uuid4().hex), lambda: made.append(1))
        with pytest.raises(manifest.DamagedError, match="was made 3 times"), entry:
            raise AssertionError("the entry is not there")
        assert len(made) == 3

    def test_a_manifest_takes_the_memory_that_it_needs(self, made):
        """A load does not allocate the maximum size of a manifest."""
        folder, _ = made
        tracemalloc.start()
        try:
            manifest.read(folder)
            assert tracemalloc.get_traced_memory()[1] < manifest.MAX_SIZE // 100
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize(
        "edit",
        [
            {"module": "no_such.so"},
            {"module": 5},
            {"absent": None},
            {"files": None},
            {"environment": {"cpv": []}},
            {"around": {"cpv": []}},
            {"files": {"\0": None}},
            {"made": {"../../object.o": ""}},
        ],
        ids=str,
    )
    def test_edited(self, made, edit):
        folder, data = made
        (folder / manifest.NAME).write_text(json.dumps(json.loads(data) | edit))
        assert self.is_damaged(folder)

    @pytest.mark.parametrize(
        "edit",
        [
            {"other": 1},
            *({"module": name} for name in ("../object.o", "..", ".", 5, "no_such.so", "\0")),
            {"files": [1]},
            {"absent": 3},
            {"absent": [3]},
            {"environment": {"cpv": []}},
            *({"made": {name: ""}} for name in ("../../object.o", "..", "", "\0", "\ud800")),
            *({field: {path: None}} for field in ("files", "on_sys_path") for path in ("\0", "\ud800")),
            *({"absent": [path]} for path in ("\0", "\ud800")),
        ],
        ids=ascii,
    )
    def test_sealed_with_another_content(self, made, edit):
        folder, data = made
        self.seal(folder, json.dumps(self.content(data) | edit))
        assert self.is_damaged(folder)

    @staticmethod
    def content(data):
        return {name: value for name, value in json.loads(data).items() if name != "sha256"}

    @staticmethod
    def seal(folder, text):
        (folder / manifest.NAME).write_bytes(private.seal(manifest._entry(folder), text.encode()))

    @pytest.mark.parametrize(
        "text", ["", "null", "[1]", '{"module": "\ud800"', '{"module": ' + "[" * 200_000], ids=range(5)
    )
    def test_sealed_text(self, made, text):
        folder, _ = made
        (folder / manifest.NAME).write_bytes(
            private.seal(manifest._entry(folder), text.encode("utf-8", "surrogatepass"))
        )
        assert self.is_damaged(folder)

    def test_a_pipe_in_the_place_of_a_file_that_was_read(self, made, place):
        """The check of a build does not wait for somebody who writes into the pipe."""
        folder, _ = made
        header = place / "header.h"
        header.touch()
        manifest.write(folder, "object.o", [str(header)], time.time() + 60, made=["object.o"])
        assert manifest.find(folder).is_current()
        header.unlink()
        os.mkfifo(header)
        assert not manifest.find(folder).is_current()

    @pytest.mark.skipif(not os.path.ismount("/proc"), reason="there is no /proc")
    @pytest.mark.parametrize("path", ["/proc/kmsg", "/proc/self/status"])
    def test_a_file_of_the_kernel(self, made, path):
        """A read of /proc/kmsg waits until the kernel writes a message. No build reads such a file."""
        folder, data = made
        self.seal(folder, json.dumps(self.content(data) | {"files": {path: None}}))
        assert manifest.find(folder).is_current()
        self.seal(folder, json.dumps(self.content(data) | {"files": {path: "a hash"}}))
        assert not manifest.find(folder).is_current()

    @pytest.mark.parametrize("needed", [["other.o"], ["other.o", "object.o"], ["object.o", "native.so"]])
    def test_another_file_than_the_build_makes(self, made, needed):
        folder, _ = made
        assert manifest.find(folder, ["object.o"])
        private._notes.clear()
        assert manifest.find(folder, needed) is None
        with pytest.warns(UserWarning, match=f"has rebuilt {folder}"):
            private.warn()

    @pytest.mark.long
    @pytest.mark.parametrize("place", ["manifest.json", "native.so", "", "..", "all"])
    @pytest.mark.usefixtures("own_cache")
    def test_a_mode_that_the_owner_cannot_read(self, tmp_path, place):
        """The owner may rebuild what was made unreadable, so a load does, once, with one warning."""
        powers = "-dac_override,-dac_read_search"  # root reads files of any mode with them
        without = ["setpriv", f"--bounding-set={powers}", f"--inh-caps={powers}"] if os.geteuid() == 0 else []
        (tmp_path / "probe").touch(0)
        probe = f"{shlex.join([*without, 'true'])} && ! {shlex.join([*without, 'cat', str(tmp_path / 'probe')])}"
        if subprocess.run(["bash", "-c", probe], capture_output=True).returncode:
            pytest.skip("this user reads files of any mode, and cannot give that up")
        text = "import interop, sys; print(interop.load_inline('x = 1', name='unreadable').__file__)"
        command = [*without, sys.executable, "-P", "-c", text]

        def load():
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return Path(done.stdout.strip()), done.stderr

        path, _ = load()
        if place == "all":
            for one in (path, path.parent, path.parents[1]):
                one.chmod(0)
        else:
            (path.parent / place).chmod(0)
        again, error = load()
        assert again != path
        assert error.count("was damaged") == 1
        assert load() == (again, "")
        assert [*again.parents[1].iterdir()] == [again.parent]

    @pytest.mark.long
    @pytest.mark.usefixtures("place", "own_cache")
    @pytest.mark.parametrize("module", ["", "no_such.so", "unlisted"])
    def test_a_build_without_its_module(self, module):
        """A load builds the module again, once, with one warning. Nothing would check a file that is not listed."""
        name = "without_" + (module.removesuffix(".so") or "any")
        folder = Path(interop.load_inline("x = 1\n", name=name).__file__).parent
        content = self.content((folder / manifest.NAME).read_bytes())
        if module == "unlisted":
            del content["made"]["native.so"]
        else:
            content["module"] = module
        self.seal(folder, json.dumps(content))
        private._notes.clear()
        with pytest.warns(UserWarning, match=f"has rebuilt .*modules/{name}-") as warned:
            again = interop.load_inline("x = 1\n", name=name)
        assert len(warned) == 1
        assert not folder.exists()
        assert interop.load_inline("x = 1\n", name=name) is again  # without a warning

    @pytest.mark.parametrize("kind", ["file", "link", "nothing", "loop", "pipe"])
    def test_no_folder(self, place, tmp_path_factory, kind):
        """Something else in the place of an entry is replaced, with a warning. What a link leads to stays."""
        outside = tmp_path_factory.mktemp("outside")
        (outside / "file").touch()
        module, header = Entry("modules", "m-key"), Entry("headers", "key")
        assert loading._find(module, []) is None
        private.warn()  # without a warning: there is no entry
        put(kind, module.folder, outside)
        assert loading._find(module, []) is None
        with pytest.warns(UserWarning, match=f"has rebuilt {module.folder}: its content"):
            private.warn()
        build = loading._new_folder(module, [])
        private.warn()
        assert [*module.folder.iterdir()] == [build]
        assert not module.folder.is_symlink()
        put(kind, header.folder, outside)
        assert self.is_damaged(header.folder)
        put("nothing", build, outside)
        private._notes.clear()
        assert manifest.find(build) is None
        with pytest.warns(UserWarning, match=f"has rebuilt {module.folder}"):
            private.warn()
        assert (outside / "file").exists()

    @pytest.mark.long
    @pytest.mark.usefixtures("place", "own_cache")
    @pytest.mark.parametrize(("kind", "lock"), [("file", "link"), ("nothing", "full")])
    def test_nothing_of_ours(self, tmp_path, kind, lock):
        """A load builds the module again, once, with one warning, if neither the entry nor its lock is ours."""
        name = f"without_folder_{kind}"
        folder = Path(interop.load_inline("x = 1\n", name=name).__file__).parents[1]
        put(kind, folder, tmp_path)
        put(lock, folder.parents[1] / "locks" / f"modules-{folder.name}", tmp_path)
        private._notes.clear()
        with pytest.warns(UserWarning, match=f"has rebuilt .*modules/{name}-.*\n.*has removed .*locks/") as warned:
            again = interop.load_inline("x = 1\n", name=name)
        assert len(warned) == 1
        assert interop.load_inline("x = 1\n", name=name) is again  # without a warning

    @pytest.mark.parametrize("data", [b"", b"[" * 200_000, b"null", b"{}", b"\xff", bytes(1000)], ids=range(6))
    def test_something_else(self, made, data):
        folder, before = made
        for content in (data, before[: len(before) // 2] + data, before + data):
            (folder / manifest.NAME).write_bytes(content)
            assert content == before or self.is_damaged(folder)

    @pytest.mark.parametrize("kind", ["folder", "link", "pipe", "loop"])
    @pytest.mark.parametrize("name", [manifest.NAME, "object.o"])
    def test_no_file(self, made, kind, name):
        folder, _ = made
        path = folder / name
        moved = path.rename(folder / "moved")
        {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path)}.get(
            kind, lambda: path.symlink_to(moved if kind == "link" else path)
        )()
        assert self.is_damaged(folder)

    def test_of_another_entry(self, made):
        folder, _ = made
        other = folder.with_name("other")
        shutil.copytree(folder, other)
        assert self.is_damaged(other)

    @pytest.mark.parametrize("content", [b"", b"obj", bytes(6), b"objects"], ids=range(4))
    def test_what_was_made(self, made, content):
        folder, _ = made
        (folder / "object.o").write_bytes(content)
        assert self.is_damaged(folder)
        (folder / "object.o").unlink()
        assert manifest.find(folder) is None  # without a warning: a cleaner of old files may remove it

    @settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_anything(self, made, data):
        folder, before = made
        edited = st.dictionaries(st.sampled_from(MANIFEST) | st.text(), JSON).map(json.loads(before).__or__)
        content = bytearray(data.draw((edited | JSON).map(json.dumps).map(str.encode) | st.just(before)))
        for place in data.draw(st.lists(st.integers(0, max(0, len(content) - 1)), max_size=5)):
            content[place : place + 1] = data.draw(st.binary(max_size=3))
        (folder / manifest.NAME).write_bytes(content)
        assert manifest.find(folder) if content == before else self.is_damaged(folder)

    def test_an_error_that_passes(self, made, place, monkeypatch):
        """A temporary error removes nothing."""
        folder, _ = made
        nvrtc.write("kernel", Image(b"code", (), {}, ""))
        error = OSError(errno.EMFILE, os.strerror(errno.EMFILE), "file")

        def fail(*_):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(private, "check", fail)
            with pytest.raises(OSError, match="Too many open files"):
                manifest.find(folder)
            assert nvrtc.read("kernel") is None
        assert explain_os_error(error) == "Too many open files: file"
        assert explain_os_error(OSError(error.errno, "why", str(folder))) == f"the cache cannot be used: {folder} (why)"
        assert manifest.find(folder)
        assert nvrtc.read("kernel")

    def test_few_files_are_open(self, place):
        """A folder takes one descriptor, however deep it is."""
        deep = place.joinpath(*"abcdefghij")
        deep.mkdir(parents=True)
        (deep / "file").touch()
        before = os.listdir("/proc/self/fd")
        with private.open_folder(deep) as handle, private.open_file(handle, deep / "file"):
            assert len(os.listdir("/proc/self/fd")) == len(before) + 2

    def test_objects_for_cuda(self, place, tmp_path, monkeypatch):
        """Damaged objects are compiled again; ninja would accept any content."""

        def compile_cuda(extension, _, folder, *__, **___):
            made = folder / "kernel.o"
            made.exists() or made.write_bytes(b"object")
            extension.extra_objects.append(str(made))

        monkeypatch.setattr(precompiled, "cuda", lambda: SimpleNamespace(toolkit=True))
        monkeypatch.setattr(precompiled, "compile_cuda", compile_cuda)
        monkeypatch.setattr(precompiled, "headers_of", lambda _: set())
        output = tmp_path / "output"
        output.mkdir()
        for has_manifest in (False, True, True):
            extension = interop.build.Extension("m", ["m.cu"], bootstrap=False)
            precompiled.compile_cuda_sources(extension, output, lambda _: None, False, False)
            assert (output / "kernel.o").read_bytes() == b"object"
            (made,) = place.glob("jit/objects/*/kernel.o")
            made.write_bytes(b"")
            has_manifest or made.with_name(manifest.NAME).unlink()

    def test_a_kernel(self, place):
        image = Image(b"code", ("kernel",), {"k<int>": "k"}, "log")
        path = place / "nvrtc" / "kernel"
        for content in (b"", b"[" * 200_000, b'{"sha256": "", "entries": 5}\ncode', None):
            nvrtc.write("kernel", image)
            assert nvrtc.read("kernel") == image
            if content is None:
                path.unlink()
                path.mkdir()
            else:
                path.write_bytes(content)
            private._notes.clear()
            with pytest.raises(UserWarning, match=f"has rebuilt {path}"):  # an error here, but the entry is removed
                nvrtc.read("kernel")
            assert not path.exists()
            assert nvrtc.read("kernel") is None

    @pytest.mark.long
    @pytest.mark.usefixtures("place", "own_cache")
    def test_a_warning_that_is_an_error(self):
        """The module is rebuilt before the error is raised."""
        text = "x = 1\n"
        path = Path(interop.load_inline(text, name="damaged").__file__)
        path.write_bytes(b"")
        private._notes.clear()
        with pytest.raises(UserWarning, match="modules/damaged-"):
            interop.load_inline(text, name="damaged")
        assert not path.exists()
        assert interop.load_inline(text, name="damaged").x == 1


class TestPrivacy:
    """A user who can write to the cache can run code as any user who loads from it."""

    def load(self):
        return interop.load_inline("x = 1\n", name="private")

    @pytest.mark.parametrize("umask", [0, 0o002, 0o022])
    def test_it_is_made_for_one_user(self, place, monkeypatch, umask):
        monkeypatch.setenv("INTEROP_CACHE_DIR", str(place / "parent" / "new"))
        before = os.umask(umask)
        try:
            cache_folder.prepare("private")
        finally:
            os.umask(before)
        for folder in (place / "parent", place / "parent" / "new", place / "parent" / "new" / "jit"):
            assert folder.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("below", [".", "jit"])
    @pytest.mark.parametrize("mode", [0o770, 0o702, 0o775])
    def test_one_that_others_can_write(self, place, below, mode):
        """The cache becomes private. An earlier version made such folders under the umask 002."""
        (place / "jit").mkdir(mode=0o700)
        (place / below).chmod(mode)
        cache_folder.prepare("private")
        assert (place / below).stat().st_mode & 0o777 == 0o700

    def test_one_with_a_folder_that_others_can_write(self, place):
        (place / "jit" / "modules").mkdir(parents=True)
        (place / "jit" / "modules").chmod(0o775)
        cache_folder.prepare("private")
        assert (place / "jit" / "modules").stat().st_mode & 0o777 == 0o700

    @pytest.mark.long
    @pytest.mark.extended
    def test_all_of_it_was_opened_to_others(self, place):
        """As in recipes for container images. The entries are rebuilt, because others may have changed them."""
        name = "opened"
        path = Path(interop.load_inline("x = 1\n", name=name).__file__)
        nvrtc.write("kernel", Image(b"code", (), {}, ""))
        subprocess.run(["chmod", "-R", "a+rwX", place], check=True)
        with pytest.warns(UserWarning, match=f"modules/{name}-") as warned:
            assert interop.load_inline("x = 1\n", name=name).x == 1
        assert len(warned) == 1
        assert not path.exists()
        with pytest.warns(UserWarning, match="nvrtc/kernel"):
            assert nvrtc.read("kernel") is None
        before = private._notes.copy()
        assert interop.load_inline("x = 1\n", name=name).x == 1
        assert private._notes == before

    @pytest.mark.parametrize("mode", [0o1777, 0o1700, 0o777])
    def test_one_that_is_shared(self, place, mode):
        """A shared folder is rejected, such as /tmp or a project's folder."""
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

    @needs_root
    @pytest.mark.parametrize("depth", range(3))
    def test_what_another_has_planted(self, place, depth):
        """A valid entry of another user is rejected, planted while all users could write to `jit`."""
        folder = place / "jit" / "modules" / "private-0" / "build"
        folder.mkdir(parents=True)
        (folder / "private.so").write_bytes(b"evil")
        manifest.write(folder, "private.so", (), time.time())
        assert manifest.find(folder)
        planted = [folder / "private.so", folder, folder.parents[1]][depth]
        os.chown(planted, 65534, -1)
        (place / "jit").chmod(0o777)
        cache_folder.prepare("private") if depth < 2 else None
        with pytest.raises(Error, match=rf"{planted} belongs to .*65534\), who .*you are root; .*INTEROP_CACHE_DIR"):
            cache_folder.prepare("private") if depth == 2 else manifest.find(folder)
        assert (place / "jit").stat().st_mode & 0o777 == 0o700

    @needs_root
    def test_it_is_not_run(self, place):
        (place / "jit" / "modules").mkdir(parents=True)
        os.chown(place / "jit" / "modules", 65534, -1)
        with pytest.raises(CacheError, match=r"jit/modules belongs to"):
            self.load()

    @pytest.mark.parametrize(
        ("name", "mode"), [(".", 0o777), (".", 0o1777), ("private.so", 0o777), (manifest.NAME, 0o777)]
    )
    def test_what_others_could_write(self, place, name, mode):
        folder = place / "jit" / "objects" / "key"
        folder.mkdir(parents=True)
        (folder / "private.so").touch()
        manifest.write(folder, "private.so", (), time.time())
        (folder / name).chmod(mode)
        assert TestDamage.is_damaged(folder)
        (place / "jit").chmod(0o777)
        with pytest.raises(Error, match=rf"{place}/jit can be written to by others \(its mode is 777\)"):
            manifest.find(folder)

    @needs_root
    @pytest.mark.parametrize("how", ["owner", "mode", "link"])
    def test_a_folder_above(self, place, how, monkeypatch):
        """A folder above must be private too, because its owner could replace the cache."""
        above = place / "above"
        if how == "link":
            (place / "real").mkdir()
            above.symlink_to(place / "real")
        else:
            above.mkdir()
        monkeypatch.setenv("INTEROP_CACHE_DIR", str(above / "cache"))
        cache_folder.prepare("private")
        if how == "mode":
            above.chmod(0o777)
        else:
            os.chown(above, 65534, -1, follow_symlinks=False)
        with pytest.raises(CacheError, match=rf"{above} (can be written to by others|belongs to .*65534)"):
            self.load()
        assert nvrtc.read("kernel") is None
        if how == "mode":
            above.chmod(0o1777)  # as /tmp
            cache_folder.prepare("private")

    def test_links_of_ones_own(self, place, monkeypatch):
        """Own links are followed, as for a home on another disk."""
        (place / "real").mkdir()
        (place / "link").symlink_to("real/../real")
        monkeypatch.setenv("INTEROP_CACHE_DIR", str(place / "link"))
        cache_folder.prepare("private")
        with private.open_folder(cache_folder.root()) as handle:
            assert os.readlink(f"/proc/self/fd/{handle}") == str(place / "real" / "jit")
        (place / "circle").symlink_to("circle")
        with pytest.raises(OSError, match=r"Not a directory: .*circle"), private.open_folder(place / "circle"):
            pass

    def test_no_link_among_temporary_files(self, tmp_path, monkeypatch):
        for name in ("INTEROP_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", "")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        (tmp_path / "mine").mkdir()
        get_cache_dir().symlink_to(tmp_path / "mine")
        with pytest.raises(
            CacheError, match=rf"{get_cache_dir()} is a link to {tmp_path}/mine, not a folder; remove it"
        ):
            self.load()
        assert not list((tmp_path / "mine").iterdir())

    def test_a_group_of_one(self, tmp_path, monkeypatch):
        """Only the group of the user alone may write; another may have unknown members."""
        group = os.getgid() or 12345
        users = [SimpleNamespace(pw_name="user", pw_gid=group)]
        monkeypatch.setattr(pwd, "getpwuid", lambda _: users[0])
        monkeypatch.setattr(pwd, "getpwall", lambda: users)
        monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name="user", gr_mem=[]))
        os.chown(tmp_path, -1, group)
        tmp_path.chmod(0o770)

        def is_open():
            private._is_only_ours.cache_clear()
            try:
                with private.open_folder(tmp_path):
                    return False
            except private.WritableError:
                return True

        assert not is_open()
        users.append(SimpleNamespace(pw_name="other", pw_gid=group))
        assert is_open()
        del users[1]
        users[0].pw_gid += 1
        assert is_open()
        users[0].pw_gid -= 1
        entries = ((1, 7, -1), (2, 7, 65534), (4, 0, -1), (0x10, 7, -1), (0x20, 0, -1))  # the second is another user
        words = b"".join(struct.pack("<HHi", *entry) for entry in entries)
        try:
            os.setxattr(tmp_path, "system.posix_acl_access", struct.pack("<I", 2) + words)
        except OSError:
            pytest.skip("this file system has no lists of who may do what")
        assert is_open()
        os.removexattr(tmp_path, "system.posix_acl_access")
        tmp_path.chmod(0o770)
        assert not is_open()
        if os.geteuid() == 0:
            os.chown(tmp_path, -1, 0)
            users[0].pw_gid = 0
            assert is_open()

    def test_users_without_a_number(self, monkeypatch):
        """In another user's container, all unmapped users, even root, look the same; only `/` is trusted."""
        state = os.stat_result((0o40755, 0, 0, 0, 12345, 0, 0, 0, 0, 0))
        monkeypatch.setattr(os, "stat", lambda _: state)
        private.check("/", state)
        with pytest.raises(private.NotPrivateError, match="/home belongs to user 12345"):
            private.check("/home", state)

    @pytest.mark.parametrize("how", ["owner", "mode"])
    def test_a_home_of_others(self, tmp_path, monkeypatch, how):
        """The default cache avoids it, as in containers; a cache chosen there raises."""
        if how == "owner" and os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        home, temporary = tmp_path / "home", tmp_path / "temporary"
        temporary.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        for name in ("INTEROP_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(home))
        home.mkdir()
        os.chown(home, 65534, -1) if how == "owner" else home.chmod(0o777)
        private._notes.clear()
        cache_folder.prepare("private")
        with pytest.warns(UserWarning, match=rf"in {temporary}/torch-interop-\d+, not in {home}/.cache: {home} "):
            private.warn()
        private.warn()
        assert (get_cache_dir() / "jit").is_dir()
        assert not list(home.iterdir())
        monkeypatch.setenv("INTEROP_CACHE_DIR", str(home / "cache"))  # chosen by the user
        advice = {"owner": "name a folder", "mode": f"run chmod go-w {home}, or name a folder"}[how]
        with pytest.raises(CacheError, match=rf"; {advice} of your own elsewhere in .* INTEROP_CACHE_DIR$"):
            cache_folder.prepare("private")

    def test_a_home_that_is_empty(self, tmp_path, monkeypatch):
        for name in ("INTEROP_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", "")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        assert get_cache_dir() == tmp_path / f"torch-interop-{os.getuid()}"

    def test_a_user_without_a_home(self, tmp_path):
        """The cache is temporary, as in a container that runs under a bare user id."""
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
