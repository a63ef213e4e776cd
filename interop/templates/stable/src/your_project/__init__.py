"""Tensor functions, compiled."""

from your_project.ops import swish

__all__ = ["swish"]
