# distutils: language = c++
"""Images that a class keeps as a typed memoryview, and several ways to keep them with other axes as well."""

import interop
import numpy as np
import torch

from interop.memview cimport permute


cdef class Images:
    """Images of (number, height, width, channels), and a view of the same memory whose axes change.

    Parameters
    ----------
    images : numpy.ndarray, torch.Tensor or memoryview
        Of float32 and four dimensions. It is shared.
    """
    cdef float[:, :, :, :] images
    cdef float[:, :, :, :] turned
    cdef object tensor

    def __init__(self, images):
        with interop.enable_buffer_protocol():
            self.images = images
        self.turned = self.images
        self.tensor = interop.from_buffer(self.images)

    def nothing(self):
        """What a call costs by itself."""

    def by_permute(self):
        """(number, channels, height, width), without the GIL."""
        with nogil:
            self.turned = permute(self.images, 0, 3, 1, 2)

    def by_dot_t(self):
        """All axes reversed: Cython has no other order."""
        with nogil:
            self.turned = self.images.T

    def by_numpy(self):
        """An array of the memoryview, transposed, and a new memoryview of that."""
        self.turned = np.asarray(self.images).transpose(0, 3, 1, 2)

    def by_base(self):
        """The same with the object that the memoryview was made of, which must then be the whole array."""
        self.turned = self.images.base.transpose(0, 3, 1, 2)

    def by_torch(self):
        """A tensor that is kept beside the memoryview, permuted, and a new memoryview of that."""
        self.turned = interop.as_memoryview(self.tensor.permute(0, 3, 1, 2))

    def array(self):
        """The member as an array, over the same memory."""
        return np.asarray(self.turned)

    def tensor_by_numpy(self):
        """The member as a tensor with torch's own functions."""
        return torch.from_numpy(np.asarray(self.turned))

    def tensor_by_interop(self):
        """The member as a tensor, over the same memory."""
        return interop.from_buffer(self.turned)
