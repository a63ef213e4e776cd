from setuptools import setup

from interop.build import BuildExtension, Extension

setup(name="pytypes", ext_modules=[Extension("pytypes", ["pytypes.pyx"])], cmdclass={"build_ext": BuildExtension})
