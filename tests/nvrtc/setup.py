from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    name="nvrtc-launches",
    ext_modules=[Extension("launches", ["launches.pyx"]), Extension("fakes", ["fakes.pyx"])],
    cmdclass={"build_ext": BuildExtension},
)
