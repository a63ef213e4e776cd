from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    ext_modules=[Extension("your_project.ops", ["src/your_project/ops.pyx"])],
    cmdclass={"build_ext": BuildExtension},
)
