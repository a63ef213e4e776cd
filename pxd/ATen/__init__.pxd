# `cimport ATen as at`: tensors, every function of ATen, and the types that they take.
from ATen.core.Generator cimport Generator
from ATen.core.TensorBase cimport TensorBase
from ATen.core.TensorBody cimport BoolArray2, BoolArray3, BoolArray4, OptionalTensorList, Tensor
from ATen.Functions cimport *
from ATen.Parallel cimport *
from c10.core.Device cimport *
from c10.core.Layout cimport *
from c10.core.MemoryFormat cimport MemoryFormat
from c10.core.Scalar cimport Scalar
from c10.core.ScalarType cimport *
from c10.core.Storage cimport Storage
from c10.core.TensorOptions cimport TensorOptions, TypeMeta
from c10.util.ArrayRef cimport ArrayRef, IntArrayRef
from interop.manual cimport *
from interop.tuple cimport *
