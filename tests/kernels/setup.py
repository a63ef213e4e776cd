from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    name="kernels",
    ext_modules=[
        Extension("loops", ["loops.pyx"]),
        Extension("serial", ["serial.pyx"], extra_compile_args=["-fno-openmp"]),
    ],
    cmdclass={"build_ext": BuildExtension},
)
