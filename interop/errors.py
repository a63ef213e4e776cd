"""`Error`, the base of every exception class of this package."""

__all__ = ["Error"]


class Error(Exception):
    """The base of every exception class of torch-interop. Each is a builtin type as well, by which it can be caught."""
