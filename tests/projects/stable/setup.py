import sysconfig

from setuptools import setup

from interop.build import BuildExtension, Extension

# As they are shipped: for torch >= 2.11 and CPython >= 3.11. A free-threaded CPython has no Limited API.
LIMITED_API = None if sysconfig.get_config_var("Py_GIL_DISABLED") else "cp311"

setup(
    name="stable",
    ext_modules=[
        Extension(name, [f"{name}.pyx"], stable="2.11", py_limited_api=LIMITED_API)
        for name in ("stable_tensors", "stable_operators")
    ],
    cmdclass={"build_ext": BuildExtension},
)
