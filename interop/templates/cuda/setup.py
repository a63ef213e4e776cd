from setuptools import setup

from interop.build import BuildExtension, Extension

setup(
    ext_modules=[
        Extension("your_project.ops", ["src/your_project/ops.pyx"]),
        # Left out where torch has no CUDA, or there is no nvcc; INTEROP_CUDA=compile compiles it all the same.
        Extension(
            "your_project.cuda_ops",
            ["src/your_project/cuda_ops.pyx", "src/your_project/softclip.cu"],
            include_dirs=["src/your_project"],
        ),
    ],
    cmdclass={"build_ext": BuildExtension},
)
