"""Operators for PyTorch, compiled: importing this registers them as torch.ops.your_project."""

import torch

from your_project import ops  # noqa: F401

if torch.cuda.is_available():
    from your_project import cuda_ops  # noqa: F401

__all__ = ["softclip"]


def softclip(x: torch.Tensor, limit: float) -> torch.Tensor:
    """Bring the elements of a tensor smoothly into an interval: ``limit * tanh(x / limit)``.

    Parameters
    ----------
    x : torch.Tensor
        Of any shape, on the CPU or a CUDA device, of a floating-point dtype; gradients flow through it.
    limit : float
        The bound, above 0.

    Returns
    -------
    torch.Tensor
        Like `x`.
    """
    if not limit > 0:
        raise ValueError(f"limit must be above 0, got {limit}")
    return torch.ops.your_project.softclip(x, limit)
