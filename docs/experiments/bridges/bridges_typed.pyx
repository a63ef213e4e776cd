"""A function whose argument is a typed memoryview. Nothing in it knows of torch."""


def rows1(float[:] values):
    return values.shape[0]


def rows2(float[:, :] values):
    return values.shape[0]


def rows3(float[:, :, :] values):
    return values.shape[0]


def rows4(float[:, :, :, :] values):
    return values.shape[0]
