from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    ext_modules=[
        Extension(
            "stable_build.ops",
            ["src/stable_build/ops.pyx", "src/stable_build/target.cpp"],
            stable="2.11",
            py_limited_api="cp311",
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
