from setuptools import setup

from interop.build import BuildExtension, Extension

setup(name="consumer", ext_modules=[Extension("consumer", ["consumer.pyx"])], cmdclass={"build_ext": BuildExtension})
