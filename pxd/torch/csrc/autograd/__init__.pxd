# Mirrors of the headers in torch/csrc/autograd.
