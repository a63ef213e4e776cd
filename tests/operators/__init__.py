"""Calls the declared surface with the samples of torch's own operator database, and compares with what torch does.

`capture` finds out which functions of ATen an operator calls, `shapes` turns such a call into the ways to write it in
Cython, `modules` writes and compiles these, `compare` says where two results differ, and `run` drives it all.
"""
