from setuptools import setup

from interop.build import BuildExtension, Extension

setup(name="plain", ext_modules=[Extension("plain", ["plain.cpp"])], cmdclass={"build_ext": BuildExtension})
