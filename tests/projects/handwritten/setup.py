from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    name="handwritten",
    ext_modules=[
        Extension("handwritten", ["handwritten.pyx"]),
        Extension("bounds", ["bounds.pyx"], define_macros=[("INTEROP_BOUNDSCHECK", None)]),
    ],
    cmdclass={"build_ext": BuildExtension},
)
