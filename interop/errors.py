"""`Error`, the base of every exception class of this package. It imports nothing, so that everything can import it."""

__all__ = ["Error"]


class Error(Exception):
    """The base of every exception class of torch-interop. Most are a builtin class as well, and can be caught as that.

    A wrong argument raises a plain ``TypeError`` or ``ValueError``, and an operator of torch what torch raises.
    """
