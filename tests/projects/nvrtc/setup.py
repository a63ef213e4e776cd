from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    name="nvrtc-launches",
    ext_modules=[Extension(name, [f"{name}.pyx"]) for name in ("fakes", "launches", "saxpy")],
    cmdclass={"build_ext": BuildExtension},
)
