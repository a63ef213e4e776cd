"""Cuts ``interop/functions.h`` down to what a module needs. (Apart from what writes it, which torchgen makes slow.)"""

OPERATORS = "#include <ATen/Operators.h>\n#include <ATen/core/List.h>\n#include <interop/tensor_list_ref.h>\n"
"""What all blocks need. A header that is cut down includes what its own do instead."""


def cut(text: str, names: set[str]) -> str:
    """The header `text` with the blocks of `names` alone, and of ATen's headers those that these need."""
    prelude, *found = text.split("\n// [")
    kept = [block for block in found if block.partition("]")[0] in names]
    headers = sorted({header for block in kept for header in block.partition("]")[2].partition("\n")[0].split()})
    includes = "".join(f"#include <{header}>\n" for header in headers)
    return "\n// [".join([prelude.replace(OPERATORS, includes), *kept])
