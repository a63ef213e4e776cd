# An operation, bound to Python. FACTOR is what an edit changes.
cimport ATen as at
cimport torch


def scaled(torch.Tensor x not None):
    return torch.wrap(at.mul(x.cdata, FACTOR))
