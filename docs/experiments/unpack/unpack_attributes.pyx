# Reads as Python does, from compiled code: by attributes. The type of the argument is not asked for.


def read_tensor(x):
    return x.numel()


def read_dtype(x):
    return x.itemsize


def read_complex(x):
    return x.real
