from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    name="bridges",
    ext_modules=[Extension("bridged", ["bridged.pyx"])],
    cmdclass={"build_ext": BuildExtension},
)
