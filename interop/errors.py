"""`Error`, the base of every exception class of this package. It imports nothing, so that everything can import it."""

__all__ = ["Error"]


class Error(Exception):
    """The base of every exception class of torch-interop. Most also derive from a builtin class.

    A wrong argument raises a plain ``TypeError`` or ``ValueError``. Operators of torch raise torch's exceptions.
    """
