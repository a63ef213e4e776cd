from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    name="library",
    version="0.1",
    ext_modules=[
        Extension(name, [f"{name}.pyx"])
        for name in ("operators", "gradients", "failing", "symbolic", "forward", "mapped")
    ],
    cmdclass={"build_ext": BuildExtension},
)
