from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    name="kernels",
    ext_modules=[
        Extension("iterators", ["iterators.pyx"]),
        Extension("loops", ["loops.pyx"]),
        Extension("operations", ["operations.pyx"]),
        Extension("templates", ["templates.pyx"]),
        Extension("serial", ["serial.pyx"], extra_compile_args=["-fno-openmp"]),
    ],
    cmdclass={"build_ext": BuildExtension},
)
