"""Words that readers search the site for. test_docs.py looks them up in the index, tools/site_check.py in a browser."""

WORDS = {
    "autograd": "autograd",
    "buffer": "bridges",
    "cmake": "building-guide",
    "compile": "jit-guide",
    "cuda": "cuda-guide",
    "dlpack": "bridges",
    "doctor": "building-guide",
    "dtype": "kernels-guide",
    "from_numpy": "api",
    "gil": "cimport-guide",
    "gradcheck": "tutorials/first-module",
    "install": "start",
    "memoryview": "bridges",
    "nogil": "cimport-guide",
    "notebook": "jit-guide",
    "numpy": "bridges",
    "operator": "operators-guide",
    "pybind11": "from/pybind11",
    "scipy": "libraries",
    "stream": "cuda-streams-guide",
    "thread": "kernels-guide",
    "torch.compile": "operators-guide",
    "undefined symbol": "troubleshooting",
    "wheel": "building-guide",
}
"""Words to search for, each with the page that must be among the first results."""
