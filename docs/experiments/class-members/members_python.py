"""The class in Python, with a slot for its tensor."""

from torch import Tensor


class Member:
    """Keeps a tensor."""

    __slots__ = ("t",)

    def __init__(self, t: Tensor):
        self.t = t

    def numel(self) -> int:
        """How many elements the tensor has."""
        return self.t.numel()

    def first(self) -> float:
        """The first of them."""
        return self.t[0].item()

    def neg(self) -> Tensor:
        """The tensor with its sign changed."""
        return self.t.neg()

    def get(self) -> Tensor:
        """The tensor."""
        return self.t

    def set(self, t: Tensor) -> None:
        """Keep another one."""
        self.t = t
