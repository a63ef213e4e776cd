"""Translates a function for 9 dtypes and 7 reductions, in a process of its own, and prints the seconds, as JSON.

    python translating.py WAY FOLDER

WAY is fused, where the dtype and the reduction are fused types of Cython, any_t, where C++ makes the instances, or
none, the imports alone.
"""

import json
import sys
import time
from pathlib import Path

from interop.cython.translate import translate

DTYPES = ("uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "int64_t", "float", "double")
REDUCTIONS = {
    "Sum": "total += value",
    "Product": "total *= value",
    "Least": "total = value if value < total else total",
    "Most": "total = value if value > total else total",
    "All": "total = total != 0 and value != 0",
    "Any": "total = total != 0 or value != 0",
    "Last": "total = value",
}
FUSED = """\
cimport torch
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t

{structs}
ctypedef fused number:
{numbers}
ctypedef fused reduction:
{reductions}

cdef void reduce_rows(const number* x, number* y, int64_t rows, int64_t columns, reduction* _) noexcept nogil:
    cdef int64_t i, j
    cdef number total, value
    for i in range(rows):
        total = x[i * columns]
        for j in range(1, columns):
            value = x[i * columns + j]
{branches}
        y[i] = total


def reduced(torch.Tensor x not None, torch.Tensor y not None, int64_t dtype, int64_t how):
    cdef const void* values = x.cdata.const_data_ptr()
    cdef void* results = y.cdata.data_ptr()
    cdef int64_t rows = x.cdata.size(0), columns = x.cdata.size(1)
{calls}
"""
ANY_T = """\
cimport ATen as at
cimport torch
from interop cimport any_t, constant_t, instantiate_part_with, scalar_t
from libc.stdint cimport int64_t

cdef struct Rows:
    const void* x
    void* y
    int64_t columns


cdef void reduce_rows(int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    cdef Rows* rows = <Rows*> of
    cdef const scalar_t* x = <const scalar_t*> rows.x
    cdef int64_t i, j
    cdef scalar_t total, value
    for i in range(begin, end):
        total = x[i * rows.columns]
        for j in range(1, rows.columns):
            value = x[i * rows.columns + j]
{branches}
        (<scalar_t*> rows.y)[i] = total


def reduced(torch.Tensor x not None, torch.Tensor y not None, int64_t how):
    cdef Rows rows
    rows.x, rows.y, rows.columns = x.cdata.const_data_ptr(), y.cdata.data_ptr(), x.cdata.size(1)
    instantiate_part_with(
        how, 7, x.cdata.scalar_type(), b"reduced", reduce_rows, at.kByte, at.kChar, at.kShort, at.kInt, at.kLong,
        at.kUInt16, at.kUInt32, at.kFloat, at.kDouble)(0, x.cdata.size(0), &rows)
"""


def source(way: str) -> str:
    """The source."""
    if way == "none":
        return ANY_T[: ANY_T.index("cdef struct")]
    conditions = [f"reduction is {name}" if way == "fused" else f"how == {i}" for i, name in enumerate(REDUCTIONS)]
    branches = "\n".join(
        f"            {'elif' if i else 'if'} {condition}:\n                {code}"
        for i, (condition, code) in enumerate(zip(conditions, REDUCTIONS.values(), strict=True))
    )
    calls = (
        f"    if dtype == {i} and how == {j}:\n"
        f"        reduce_rows[{dtype}, {name}](<const {dtype}*> values, <{dtype}*> results, rows, columns, NULL)"
        for i, dtype in enumerate(DTYPES)
        for j, name in enumerate(REDUCTIONS)
    )
    return (FUSED if way == "fused" else ANY_T).format(
        branches=branches,
        structs="".join(f"cdef struct {name}:\n    int _\n\n" for name in REDUCTIONS),
        numbers="".join(f"    {dtype}\n" for dtype in DTYPES),
        reductions="".join(f"    {name}\n" for name in REDUCTIONS),
        calls="\n".join(calls),
    )


def main(way: str, folder: str) -> None:
    """Run one process of the experiment."""
    seconds = []
    for name, text in (("first", "cimport ATen as at\nat.ones((1,))\n"), ("reduced", source(way))):
        path = Path(folder, f"{name}.pyx")
        path.write_text(text)
        started = time.perf_counter()
        translate(str(path), name, path.with_suffix(".cpp"), declarations=Path(folder, "declarations"))
        seconds.append(time.perf_counter() - started)
    print(json.dumps(seconds[1]))  # the first one imports Cython


if __name__ == "__main__":
    main(*sys.argv[1:])
