"""A plugin of pytest: the operators of torch_cluster are ours, under the Python code of the original."""

import torch

from experiments.harness.building import native
from experiments.ports.base import NAME

native(NAME, "cluster_cython")
torch.ops.load_library = lambda _: None  # of the original's C++, which is not compiled here

LIBRARY = torch.library.Library("torch_cluster", "DEF")
LIBRARY.define("cuda_version() -> int")
LIBRARY.impl("cuda_version", lambda: -1, "CompositeExplicitAutograd")
for name in ("knn", "radius", "fps", "graclus", "grid"):
    ours = getattr(torch.ops.ports_cluster, name)
    LIBRARY.define(str(ours.default._schema).replace("ports_cluster::", ""))
    LIBRARY.impl(name, lambda *arguments, ours=ours: ours(*arguments), "CompositeExplicitAutograd")
