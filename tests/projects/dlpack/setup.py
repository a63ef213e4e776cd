from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    name="dlpack-tests",
    ext_modules=[Extension(name, [f"{name}.pyx"]) for name in ("dlpacked", "fake_pointers")],
    cmdclass={"build_ext": BuildExtension},
)
