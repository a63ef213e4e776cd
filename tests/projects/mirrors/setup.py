from setuptools import setup

from interop.build import BuildExtension, Extension

setup(name="mirrors", ext_modules=[Extension("mirrors", ["mirrors.pyx"])], cmdclass={"build_ext": BuildExtension})
