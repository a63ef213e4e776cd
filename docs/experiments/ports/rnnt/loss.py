"""The losses of fast_rnnt that its users call, on the operator: `rnnt_loss_simple`, `rnnt_loss`, and the recursion.

Arguments and results are those of fast_rnnt. The mathematics around the recursion is plain torch there and here.
"""

from typing import Literal

import torch
from torch import Tensor

from experiments.harness import building

__all__ = [
    "get_rnnt_logprobs",
    "get_rnnt_logprobs_joint",
    "mutual_information_recursion",
    "rnnt_loss",
    "rnnt_loss_simple",
]

building.native("ports", "rnnt_cython")  # registers the operator

RnntType = Literal["regular", "modified", "constrained"]
Reduction = Literal["none", "mean", "sum"]
Gradients = tuple[Tensor, Tensor]


def mutual_information_recursion(
    px: Tensor, py: Tensor, boundary: Tensor | None = None, return_grad: bool = False
) -> Tensor | tuple[Tensor, Gradients]:
    """The log of the sum over all paths of a lattice, for each item of a batch.

    Parameters
    ----------
    px
        [B, S, T + 1]: the score of a step from (s, t) to (s + 1, t). If it is [B, S, T], the modified variant is
        computed: the step is to (s + 1, t + 1).
    py
        [B, S + 1, T]: the score of a step from (s, t) to (s, t + 1).
    boundary
        int64 [B, 4] with rows [s_begin, t_begin, s_end, t_end], or None for [0, 0, S, T].
    return_grad
        Whether to return the gradients of the sum of the scores for px and py too: how often the paths take each step.
        They belong to no graph.
    """
    wanted = return_grad or (torch.is_grad_enabled() and (px.requires_grad or py.requires_grad))
    scores, px_grad, py_grad = torch.ops.ports_rnnt.mutual_information(px, py, boundary, wanted)
    return (scores, (px_grad, py_grad)) if return_grad else scores


def _check(symbols: int, frames: int, boundary: Tensor | None, rnnt_type: str) -> None:
    if rnnt_type not in ("regular", "modified", "constrained"):
        raise ValueError(f"argument 'rnnt_type' must be 'regular', 'modified' or 'constrained', got {rnnt_type!r}")
    if boundary is None:
        if symbols < 1:
            raise ValueError("argument 'symbols' must have a symbol at least, got none")
        if rnnt_type != "regular" and frames < symbols:
            raise ValueError(
                f"a {rnnt_type} path takes a frame for each symbol, got {symbols} symbols and {frames} frames; "
                "use rnnt_type='regular'"
            )
    elif not torch.compiler.is_compiling():  # it reads values
        if (boundary[:, 2] < 1).any():
            raise ValueError("argument 'boundary' must leave each item a symbol at least: s_end >= 1")
        if rnnt_type != "regular" and (boundary[:, 3] < boundary[:, 2]).any():
            raise ValueError(
                f"a {rnnt_type} path takes a frame for each symbol, got a 'boundary' with t_end < s_end; "
                "use rnnt_type='regular'"
            )


def _finish(px: Tensor, py: Tensor, boundary: Tensor | None, rnnt_type: str) -> Gradients:
    """px and py out of the log-probabilities of symbols [B, S, T] and of the blank [B, S + 1, T]."""
    if rnnt_type == "regular":
        # After the last frame no symbol comes.
        px = torch.nn.functional.pad(px, (0, 1), value=-torch.inf)
        if boundary is not None:
            end = boundary[:, 3].reshape(-1, 1, 1).expand(-1, px.size(1), 1)
            px = px.scatter(2, end, -torch.inf)
    elif rnnt_type == "constrained":
        px = px + py[:, 1:]
    return px, py


def get_rnnt_logprobs(
    lm: Tensor,
    am: Tensor,
    symbols: Tensor,
    termination_symbol: int,
    rnnt_type: RnntType = "regular",
    boundary: Tensor | None = None,
) -> Gradients:
    """px and py for logits that are sums, lm[b, s] + am[b, t], of which no tensor [B, T, S + 1, C] is made."""
    _check(symbols.size(1), am.size(1), boundary, rnnt_type)
    # Not amax, whose gradient compares each logit with the largest one: that of max is written to one place.
    am_max, lm_max = (x.max(2, keepdim=True).values for x in (am, lm))
    products = (lm - lm_max).exp() @ (am - am_max).exp().mT
    normalizers = (products + torch.finfo(am.dtype).tiny).log() + lm_max + am_max.mT  # [B, S + 1, T]
    index = symbols.unsqueeze(2)
    px = am.mT.gather(1, index.expand(-1, -1, am.size(1))) + lm.gather(2, index) - normalizers[:, :-1]
    py = am[:, :, termination_symbol].unsqueeze(1) + lm[:, :, termination_symbol].unsqueeze(2) - normalizers
    return _finish(px, py, boundary, rnnt_type)


def get_rnnt_logprobs_joint(
    logits: Tensor,
    symbols: Tensor,
    termination_symbol: int,
    boundary: Tensor | None = None,
    rnnt_type: RnntType = "regular",
) -> Gradients:
    """px and py for logits [B, T, S + 1, C]."""
    frames, count = logits.size(1), symbols.size(1)
    _check(count, frames, boundary, rnnt_type)
    normalizers = logits.logsumexp(3)  # [B, T, S + 1]
    # Symbol and blank in one call, so that its gradient fills one tensor of the size of the logits.
    index = torch.stack([symbols, torch.full_like(symbols, termination_symbol)], 2)
    index = torch.nn.functional.pad(index, (0, 0, 0, 1), value=termination_symbol)
    probabilities = logits.gather(3, index.unsqueeze(1).expand(-1, frames, -1, -1)) - normalizers.unsqueeze(3)
    px, py = probabilities[:, :, :-1, 0], probabilities[..., 1]
    return _finish(px.mT, py.mT, boundary, rnnt_type)


def _loss(
    px: Tensor,
    py: Tensor,
    boundary: Tensor | None,
    rnnt_type: str,
    delay_penalty: float,
    reduction: str,
    return_grad: bool,
) -> Tensor | tuple[Tensor, Gradients]:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"argument 'reduction' must be 'none', 'mean' or 'sum', got {reduction!r}")
    if delay_penalty > 0:
        frames = py.size(2)
        middle = (frames - 1) / 2 if boundary is None else ((boundary[:, 3] - 1) / 2).reshape(-1, 1, 1)
        earlier = middle - torch.arange(px.size(2), device=px.device)
        px = px + (earlier * delay_penalty).to(px.dtype)
    result = mutual_information_recursion(px, py, boundary, return_grad)
    scores, gradients = result if isinstance(result, tuple) else (result, None)
    loss = -scores if reduction == "none" else -scores.mean() if reduction == "mean" else -scores.sum()
    return loss if gradients is None else (loss, gradients)


def rnnt_loss_simple(
    lm: Tensor,
    am: Tensor,
    symbols: Tensor,
    termination_symbol: int,
    boundary: Tensor | None = None,
    rnnt_type: RnntType = "regular",
    delay_penalty: float = 0.0,
    reduction: Reduction = "mean",
    return_grad: bool = False,
) -> Tensor | tuple[Tensor, Gradients]:
    """The RNN-T loss of a joiner that adds: lm is [B, S + 1, C], am is [B, T, C], symbols is int64 [B, S]."""
    px, py = get_rnnt_logprobs(lm, am, symbols, termination_symbol, rnnt_type, boundary)
    return _loss(px, py, boundary, rnnt_type, delay_penalty, reduction, return_grad)


def rnnt_loss(
    logits: Tensor,
    symbols: Tensor,
    termination_symbol: int,
    boundary: Tensor | None = None,
    rnnt_type: RnntType = "regular",
    delay_penalty: float = 0.0,
    reduction: Reduction = "mean",
    return_grad: bool = False,
) -> Tensor | tuple[Tensor, Gradients]:
    """The RNN-T loss of the logits of any joiner, [B, T, S + 1, C]; symbols is int64 [B, S]."""
    px, py = get_rnnt_logprobs_joint(logits, symbols, termination_symbol, boundary, rnnt_type)
    return _loss(px, py, boundary, rnnt_type, delay_penalty, reduction, return_grad)
