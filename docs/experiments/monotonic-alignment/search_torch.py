"""The search in plain PyTorch: a step of all batch items and all text positions at a time, a loop over the frames."""

import torch
from torch import Tensor


@torch.no_grad()
def search(scores: Tensor, text_lengths: Tensor, frame_lengths: Tensor) -> Tensor:
    """The best monotonic path of each item, as 0 and 1 in a new int32 tensor like `scores` [batch, text, frames]."""
    batch, _, frames = scores.shape
    unreachable = scores.new_full((batch, 1), -torch.inf)
    # By frame, so that what a step reads lies together.
    columns = scores.permute(2, 0, 1).contiguous()
    totals = torch.full_like(columns[0], -torch.inf)
    totals[:, 0] = columns[0, :, 0]
    moved = torch.empty(columns.shape, dtype=torch.bool)
    for frame in range(1, frames):
        above = torch.cat((unreachable, totals[:, :-1]), 1)
        torch.gt(above, totals, out=moved[frame])
        totals = torch.maximum(above, totals).add_(columns[frame])

    path = torch.empty(frames, batch, dtype=torch.int64)
    items, text = torch.arange(batch), text_lengths - 1
    for frame in reversed(range(frames)):
        path[frame] = text
        moves = moved[frame, items, text] | (text == frame)
        text = text - (moves & (text > 0) & (frame < frame_lengths)).long()
    mask = torch.zeros(scores.shape, dtype=torch.int32)
    inside = (torch.arange(frames)[:, None] < frame_lengths).to(torch.int32)
    return mask.scatter_(1, path.t()[:, None], inside.t()[:, None])
