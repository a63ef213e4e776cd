# `cimport ATen as at`: tensors, every function of ATen, and the types that they take. All of these names C++ has in its
# namespaces `at` and `at::indexing`. What ATen does not have is in `interop`.
from ATen.Context cimport (
    getNumGPUs, hasCUDA, hasHIP, hasHPU, hasLAPACK, hasMAGMA, hasMKL, hasMKLDNN, hasMPS, hasMTIA, hasOpenMP, hasXLA,
    hasXPU, manual_seed,
)
from ATen.core.Generator cimport Generator
from ATen.core.TensorBase cimport TensorBase
from ATen.core.TensorBody cimport Tensor, TensorIndex
from ATen.Functions cimport *
from ATen.Parallel cimport (
    get_num_interop_threads, get_num_threads, get_thread_num, in_parallel_region, parallel_for, parallel_reduce,
    set_num_threads,
)
from ATen.TensorIndexing cimport Ellipsis, None_, Slice
from ATen.TensorIterator cimport TensorIterator, TensorIteratorConfig
from c10.core.Device cimport *
from c10.core.GradMode cimport GradMode
from c10.core.Layout cimport *
from c10.core.MemoryFormat cimport MemoryFormat
from c10.core.Scalar cimport Scalar
from c10.core.ScalarType cimport *
from c10.core.Storage cimport Storage
from c10.core.TensorOptions cimport TensorOptions, TypeMeta
from c10.util.ArrayRef cimport ArrayRef, IntArrayRef
from c10.util.BFloat16 cimport BFloat16
from c10.util.Half cimport Half
from interop.manual cimport *
