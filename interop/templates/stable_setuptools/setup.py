from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    ext_modules=[
        # One file, for these releases of torch and CPython and for later ones.
        Extension(
            "your_project.ops",
            ["src/your_project/ops.pyx"],
            stable="your_stable",
            py_limited_api="your_limited_api",
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
