from setuptools import setup

from interop.build import BuildExtension, Extension

FLAGS = ["-O3", "-fno-trapping-math", "-fno-math-errno"]

setup(
    name="vectors",
    ext_modules=[Extension("vectors", ["vectors.pyx"], extra_compile_args=FLAGS)],
    cmdclass={"build_ext": BuildExtension},
)
