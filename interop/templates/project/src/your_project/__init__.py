"""Tensor functions, compiled."""

from your_project.ops import softclip

__all__ = ["softclip"]
