from setuptools import setup

from interop.build import BuildExtension, Extension

faults = Extension("faults", ["faults.pyx"], include_dirs=["."], depends=["planted.h"])
setup(name="faults", ext_modules=[faults], cmdclass={"build_ext": BuildExtension})
