from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    name="dlpack-tests",
    ext_modules=[Extension("dlpacked", ["dlpacked.pyx"])],
    cmdclass={"build_ext": BuildExtension},
)
