from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    name="streams",
    ext_modules=[
        Extension("cuda_mirrors", ["cuda_mirrors.pyx"]),
        Extension("fake_devices", ["fake_devices.pyx"], depends=["fake_devices.h"], include_dirs=["."]),
        Extension("streams", ["streams.pyx"]),
    ],
    cmdclass={"build_ext": BuildExtension},
)
