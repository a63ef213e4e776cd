from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    name="memviews",
    ext_modules=[Extension("memviews", ["memviews.pyx"])],
    cmdclass={"build_ext": BuildExtension},
)
