"""Kernels compiled at run time: the calls of NVRTC, its messages, and the cache. No test needs a GPU."""

import functools
import gc
import importlib.util
import os
import re
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from conftest import PROJECTS, TESTS

import interop.cuda
from interop import private
from interop.cuda import cache, nvrtc

needs_nvrtc = pytest.mark.skipif(
    not importlib.util.find_spec("cuda") or not importlib.util.find_spec("cuda.bindings"),
    reason="needs the packages cuda-bindings and nvidia-cuda-nvrtc",
)
SAXPY = """\
#include <cstdint>

template <class T>
__global__ void saxpy(T* y, const T* x, float a, int64_t n) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)(a * (float)x[i] + (float)y[i]);
}

namespace inner { __global__ void nothing() {} }
"""


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """Each test has its own cache, on disk and in memory."""
    monkeypatch.setenv("INTEROP_CACHE_DIR", str(tmp_path))
    for name in ("_images", "_modules"):
        monkeypatch.setattr(interop.cuda.module, name, type(getattr(interop.cuda.module, name))())
    return tmp_path / "nvrtc"


@pytest.fixture
def compilations(monkeypatch):
    """A list of the arguments with which NVRTC is called."""
    asked = []
    compile_image = nvrtc.compile_image

    def counted(*arguments):
        asked.append(arguments)
        return compile_image(*arguments)

    monkeypatch.setattr("interop.cuda.module.compile_image", counted)
    return asked


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "compute_80"])
def test_compiles_for_an_architecture(arch):
    module = interop.cuda.compile(SAXPY, arch=arch, instances=["saxpy<float>", "saxpy< double >"])
    assert sorted(module.kernels) == ["inner::nothing", "saxpy<double>", "saxpy<float>"]
    kernel = module["saxpy<float>"]
    assert kernel.parameters == ("float*", "float const*", "float", "long")
    assert kernel.lowered_name.encode() in module.code
    assert module["inner::nothing"].parameters == ()
    assert module[" inner::nothing "].name == "inner::nothing"
    if arch.startswith("sm"):
        assert module.code.startswith(b"\x7fELF")
    else:
        assert b".target " + arch.replace("compute", "sm").encode() in module.code
        assert module.code.endswith(b"\0")


@needs_nvrtc
def test_compiles_with_half_precision():
    if not nvrtc.include_options():
        pytest.skip("needs the package nvidia-cuda-runtime, which has cuda_fp16.h")
    source = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + SAXPY
    module = interop.cuda.compile(source, arch="sm_90", instances=["saxpy<__half>", "saxpy<__nv_bfloat16>"])
    assert module["saxpy<__half>"].parameters == ("__half*", "__half const*", "float", "long")
    assert module["saxpy<__nv_bfloat16>"].parameters[1] == "__nv_bfloat16 const*"


@needs_nvrtc
def test_threads_search_for_headers_once(monkeypatch):
    asked, start = [], threading.Barrier(8)

    def slow(name):
        asked.append(name)
        time.sleep(0.02)  # as the processes that a real search starts

    monkeypatch.setattr("cuda.pathfinder.find_nvidia_header_directory", slow)
    monkeypatch.setattr(nvrtc, "_include_options", functools.cache(nvrtc._include_options.__wrapped__))
    threads = [threading.Thread(target=lambda: (start.wait(), nvrtc.include_options())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked == ["cudart", "cccl"]


@needs_nvrtc
def test_guide():
    if not nvrtc.include_options():
        pytest.skip("needs the package nvidia-cuda-runtime, which has cuda_fp16.h")
    page = (TESTS.parent / "docs" / "cuda-nvrtc-guide.md").read_text()
    source = page.partition('SOURCE = """')[2].partition('"""')[0]
    assert interop.cuda.compile(source, arch="sm_90")["saxpy<__half>"].parameters[2:] == ("float", "long")
    # The guide's module in Cython is a project of the tests.
    assert f"```cython\n{(PROJECTS / 'nvrtc' / 'saxpy.pyx').read_text()}```" in page


@needs_nvrtc
def test_message_in_the_guide():
    """The guide shows the real message, except for the release of NVRTC."""
    ((wanted,),) = (
        re.findall(r"```text\n(.*?)```", (TESTS.parent / "docs" / "cuda-nvrtc-guide.md").read_text(), re.DOTALL),
    )
    with pytest.raises(interop.cuda.CompileError) as caught:
        interop.cuda.compile("__global__ void k(float* y) {\n  y[0] = missing + 1;\n}", arch="sm_90")
    (told,) = re.findall(r"^(?:.*\n){4}", f"{caught.value}\n")
    assert re.sub(r"NVRTC [\d.]+", "NVRTC", told) == re.sub(r"NVRTC [\d.]+", "NVRTC", wanted)


@needs_nvrtc
def test_instance_is_compiled_when_asked_for(compilations):
    module = interop.cuda.compile(SAXPY, arch="sm_90")
    assert module.kernels == ["inner::nothing"]
    kernel = module["saxpy<float>"]
    assert kernel.parameters[0] == "float*"
    assert module["saxpy< float >"].module is kernel.module
    assert len(compilations) == 2
    with pytest.raises(interop.cuda.CompileError, match=r"saxpy<nonsense>(.|\n)*\"nonsense\" is undefined"):
        module["saxpy<nonsense>"]


@needs_nvrtc
def test_kernel_that_is_not_there():
    module = interop.cuda.compile(SAXPY, arch="sm_90")
    with pytest.raises(KeyError, match=r"no kernel 'saxpy'; it has 'inner::nothing'; .*'axpy<float>'"):
        module["saxpy"]
    with pytest.raises(TypeError, match="must be a str, got 3"):
        module[3]
    overloaded = interop.cuda.compile(
        "__global__ void k(int* x) {} __global__ void k(float* x, int n) {}", arch="sm_90"
    )
    assert overloaded.kernels == ["k(int*)", "k(float*, int)"]
    assert overloaded["k(float*,int)"].parameters == ("float*", "int")
    with pytest.raises(KeyError, match=r"several kernels named 'k'.*'k\(int\*\)', 'k\(float\*, int\)'"):
        overloaded["k"]


@needs_nvrtc
def test_error_shows_the_line():
    source = "__global__ void k(float* y) {\n  y[0] = missing + 1;\n}"
    with pytest.raises(interop.cuda.CompileError) as caught:
        interop.cuda.compile(source, name="mine.cu", arch="sm_80", options=["-DN=4"])
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("mine.cu does not compile for sm_80 (NVRTC ")
    assert lines[0].endswith("options: -DN=4):")
    assert lines[1:4] == [
        'mine.cu(2): error: identifier "missing" is undefined',
        "    y[0] = missing + 1;",
        "           ^",
    ]
    assert caught.value.log.startswith("mine.cu(2)")
    assert (caught.value.arch, caught.value.options) == ("sm_80", ("-DN=4",))
    assert isinstance(caught.value, RuntimeError)


@needs_nvrtc
def test_options_and_headers_are_used():
    source = '#include "sizes.h"\n__global__ void k(float (*x)[N * M]) {}'
    module = interop.cuda.compile(source, arch="sm_90", options=["-DN=4"], headers={"sizes.h": "#define M 2"})
    assert module["k"].parameters == ("float (*) [8]",)
    assert "declared but never referenced" in interop.cuda.compile("__global__ void k() { int n; }", arch="sm_90").log


@needs_nvrtc
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"arch": "sm_30"}, ValueError, r"knows N = .*90.*got 'sm_30'"),
        ({"arch": "90"}, ValueError, "must be sm_N .* or compute_N .* got '90'"),
        ({"arch": 90}, TypeError, "such as 'sm_90' or 'compute_80', or None, got 90"),
        (
            {"options": ["--foo"]},
            interop.cuda.CompileError,
            r"option --foo found\nNVRTC's options are listed at https:",
        ),
        ({"options": "-DN"}, TypeError, r"options must be a list of str such as \['-DN=4'\], got '-DN'"),
        ({"options": ["-arch=sm_80"]}, ValueError, "got '-arch=sm_80'; give arch='sm_90'"),
        ({"options": ["-dlto"]}, interop.cuda.CompileError, "produce no code that can be loaded"),
        ({"instances": "saxpy<float>"}, TypeError, "instances must be a list of str"),
        ({"headers": {"a.h": b""}}, TypeError, "headers must be a dict from names to texts"),
        ({"name": ""}, TypeError, "name must be a str such as 'kernel.cu'"),
        ({"source": b""}, TypeError, r"source must be a str with CUDA C\+\+, got bytes"),
        ({"source": "#include <vector>"}, interop.cuda.CompileError, r"no header 'vector': give its text in headers"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        interop.cuda.compile(**({"source": SAXPY, "arch": "sm_90"} | arguments))


@needs_nvrtc
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device to compile for")
def test_needs_an_architecture_where_there_is_no_device():
    with pytest.raises(RuntimeError, match=r"no CUDA device to compile for; .*arch='sm_90'"):
        interop.cuda.compile(SAXPY)


def test_architecture_of_the_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA Test")
    monkeypatch.setattr(nvrtc, "supported", lambda: [75, 80, 90])
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    for capability, arch in [((9, 0), "sm_90"), ((7, 5), "sm_75"), ((8, 6), "compute_80"), ((12, 0), "compute_90")]:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda capability=capability: capability)
        assert nvrtc.check_arch(None) == arch
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (6, 1))
    with pytest.raises(RuntimeError, match=r"NVIDIA Test, of capability 6\.1; the oldest supported is 7\.5"):
        nvrtc.check_arch(None)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("cuda.bindings", r"through the package cuda-bindings .*pip install 'cuda-bindings==13\.\*'"),
        ("libnvrtc", r"needs the library libnvrtc, .*not there.*'nvidia-cuda-nvrtc==13\.\*'"),
    ],
)
def test_without_nvrtc(missing, message, monkeypatch):
    class Broken:
        @staticmethod
        def nvrtcVersion():  # noqa: N802
            raise RuntimeError("libnvrtc is not there")

    bindings = None if missing == "cuda.bindings" else type(sys)("cuda.bindings")
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setitem(sys.modules, "cuda", type(sys)("cuda"))
    if bindings:
        bindings.nvrtc = Broken
    monkeypatch.setattr(torch.version, "cuda", None)
    nvrtc.load.cache_clear()
    try:
        with pytest.raises(ImportError, match=message):
            interop.cuda.compile(SAXPY, arch="sm_90")
    finally:
        nvrtc.load.cache_clear()


def test_import_brings_no_bindings(bare):
    code = """
import sys, torch
before = set(sys.modules)  # torch itself imports them where they are
import interop
assert "interop.cuda" not in sys.modules
interop.cuda.compile
print([name for name in sys.modules.keys() - before if name.startswith("cuda")])
"""
    assert bare(code).strip() == "[]"


@needs_nvrtc
def test_module_that_is_in_use_is_not_compiled_again(compilations, cache_folder):
    module = interop.cuda.compile(SAXPY, arch="sm_90")
    interop.cuda.module._images.clear()
    shutil.rmtree(cache_folder)
    assert interop.cuda.compile(SAXPY, arch="sm_90") is module
    assert len(compilations) == 1


@needs_nvrtc
def test_same_source_is_the_same_module(compilations):
    module = interop.cuda.compile(SAXPY, arch="sm_90")
    assert interop.cuda.compile(SAXPY, arch="sm_90") is module
    others = [
        interop.cuda.compile(SAXPY + "\n", arch="sm_90"),
        interop.cuda.compile(SAXPY, arch="sm_80"),
        interop.cuda.compile(SAXPY, arch="sm_90", options=["-lineinfo"]),
        interop.cuda.compile(SAXPY, arch="sm_90", headers={"a.h": ""}),
        interop.cuda.compile(SAXPY, arch="sm_90", name="other.cu"),
        interop.cuda.compile(SAXPY, arch="sm_90", instances=["saxpy<float>"]),
    ]
    assert len(set(map(id, [module, *others]))) == len(compilations) == 7
    del module
    gc.collect()
    interop.cuda.compile(SAXPY, arch="sm_90")
    assert len(compilations) == 7


@needs_nvrtc
@pytest.mark.long
def test_module_is_read_from_disk(compilations, cache_folder, monkeypatch):
    def compile_again():
        gc.collect()
        interop.cuda.module._images.clear()
        return interop.cuda.compile(SAXPY, arch="sm_90", instances=["saxpy<float>"])

    code, kernels = (lambda module: (module.code, module.kernels))(compile_again())
    assert (compile_again().code, compile_again().kernels) == (code, kernels)
    assert compile_again()["saxpy<float>"].parameters
    assert len(compilations) == 1

    (entry,) = cache_folder.iterdir()
    whole = entry.read_bytes()
    heads = [b"{}", b"[]", b"\xff", b"[" * 100_000, b'{"entries": 5, "instances": {}, "log": ""}']
    heads += [b'{"entries": [], "instances": [], "log": ""}', b'{"entries": [5], "instances": {}, "log": ""}']
    sealed = [private.seal(entry.name, head + b"\n") for head in heads]
    for broken in [b"", b"{}\n", whole[:-1], whole.replace(b"sha256", b"sha255"), b"\xff" + whole, *sealed]:
        entry.write_bytes(broken)
        before = len(compilations)
        private._notes.clear()
        with pytest.warns(UserWarning, match="was damaged"):
            assert compile_again().code == code
        assert len(compilations) == before + 1
        assert entry.read_bytes() == whole

    # The code of another NVRTC is not used.
    before = len(compilations)
    monkeypatch.setattr("interop.cuda.module.version", lambda: "99.0")
    compile_again()
    assert len(compilations) == before + 1


@needs_nvrtc
def test_folders_that_may_change_are_not_kept(compilations, cache_folder, tmp_path):
    (tmp_path / "mine.h").write_text("#define TYPE float")
    source = '#include "mine.h"\n__global__ void k(TYPE* x) {}'
    options = [f"-I{tmp_path}"]
    assert interop.cuda.compile(source, arch="sm_90", options=options)["k"].parameters == ("float*",)
    (tmp_path / "mine.h").write_text("#define TYPE double")
    assert interop.cuda.compile(source, arch="sm_90", options=options)["k"].parameters == ("double*",)
    assert not cache_folder.exists()


@needs_nvrtc
def test_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INTEROP_CACHE_DIR", str(tmp_path / "file"))
    assert interop.cuda.compile(SAXPY, arch="sm_90").kernels


def test_cache_is_bounded(cache_folder, monkeypatch):
    monkeypatch.setattr(cache, "MAX_ENTRIES", 8)
    names = [cache.key(i) for i in range(9)]
    for age, name in enumerate(names):
        cache.write(name, nvrtc.Image(b"code", ("k",)))
        if age < 8:
            os.utime(cache_folder / name, (age + 1, age + 1))
    assert cache.read(names[0]) is None
    assert cache.read(names[8]) == nvrtc.Image(b"code", ("k",), {}, "")
    assert len(list(cache_folder.iterdir())) == 6


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"INTEROP_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a/nvrtc"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/torch-interop/nvrtc"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.cache/torch-interop/nvrtc"),
        ({"HOME": "/home/me"}, "/home/me/.cache/torch-interop/nvrtc"),
    ],
)
def test_cache_folder(variables, folder, monkeypatch):
    for name in ("INTEROP_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache.folder() == Path(folder)
