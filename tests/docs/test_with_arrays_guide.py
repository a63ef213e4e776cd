"""The blocks of docs/with-arrays.md run one after the other."""

import numpy as np
import torch
from doc_blocks import of

PAGE = "docs/with-arrays.md"


def test_blocks():
    names = {"np": np, "torch": torch}
    for code in of(PAGE, "python"):
        exec(compile(code, PAGE, "exec"), names)
