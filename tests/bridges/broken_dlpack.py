"""Variants of from_dlpack and to_dlpack, each wrong in one way; see broken_converters.py."""

import ctypes

import dlpack_structs as structs
import numpy as np
import torch
from dlpack_structs import DELETER, Versioned

_kept = []


def is_capsule(given):
    return type(given).__name__ == "PyCapsule"


def is_unused(given):
    return is_capsule(given) and not structs.name_of(given).startswith("used")


def on(condition, wrong):
    """Our converter, but `wrong(ours, given, ...)` if `condition(given)`."""

    def make(ours):
        def convert(given, **options):
            return wrong(ours, given, **options) if condition(given) else ours(given, **options)

        return convert

    return make


def lying(change):
    """Applies `change` to the struct of an unused capsule, and then calls our converter."""

    def wrong(ours, given, **options):
        change(structs.inside(given))
        return ours(given, **options)

    return on(is_unused, wrong)


def versioned(change):
    return lying(lambda managed: change(managed) if isinstance(managed, Versioned) else None)


def attribute(path, value):
    *owners, name = path.split(".")

    def change(managed):
        for owner in owners:
            managed = getattr(managed, owner)
        setattr(managed, name, value(getattr(managed, name)) if callable(value) else value)

    return change


def ended_at_once(managed):
    if managed.deleter:
        managed.deleter(ctypes.addressof(managed))
    managed.deleter = DELETER()


def forgotten_if_empty(managed):
    if 0 in managed.tensor.shape[: max(managed.tensor.ndim, 0)]:
        managed.deleter = DELETER()


def without_sign(managed):
    tensor = managed.tensor
    if 0 <= tensor.ndim <= 64 and tensor.strides and tensor.shape:
        for axis in range(tensor.ndim):
            tensor.strides[axis] = abs(max(tensor.strides[axis], -(2**62)))


def in_c_order(managed):
    managed.tensor.strides = None


def rounded_down(managed):
    if managed.tensor.data:
        managed.tensor.data -= managed.tensor.data % 8


def without_an_axis(managed):
    managed.tensor.ndim = max(managed.tensor.ndim, 0)


def reusable(ours, given, **options):
    name = structs.name_of(given).encode()
    result = ours(given, **options)
    structs._python.PyCapsule_SetName(given, structs.NAMES[{b"dltensor": structs.Legacy}.get(name, Versioned)])
    return result


def leaking(ours, given, **options):
    result = ours(given, **options)
    _kept.append(result.detach())
    return result


def tensors(condition):
    return lambda given: isinstance(given, torch.Tensor) and condition(given)


def without(name, value):
    """Ignores an argument: it is always `value`."""
    return on(lambda given: True, lambda ours, given, **options: ours(given, **(options | {name: value})))


def is_strided(tensor):
    return tensor.layout == torch.strided and not tensor.is_nested and not tensor.is_meta


def always(wrong):
    return on(lambda given: True, wrong)


FROM = {
    "no owner": lying(ended_at_once),
    "leak": always(leaking),
    "copies": always(lambda ours, given, **options: ours(given, **options).clone()),
    "0-d as 1-d": always(lambda ours, given, **options: torch.atleast_1d(ours(given, **options))),
    "byte_offset ignored": lying(attribute("tensor.byte_offset", 0)),
    "negative strides taken for positive": lying(without_sign),
    "strides ignored": lying(in_c_order),
    "copy ignored": without("copy", None),
    "copy always": without("copy", True),
    "read-only flag ignored": versioned(attribute("flags", lambda flags: flags & ~structs.READ_ONLY)),
    "copied flag ignored": versioned(attribute("flags", lambda flags: flags & ~structs.IS_COPIED)),
    "readonly ignored": without("on_readonly", "share"),
    "readonly always copied": without("on_readonly", "copy"),
    "capsule reusable": on(is_unused, reusable),
    "lanes ignored": lying(attribute("tensor.dtype.lanes", 1)),
    "bits ignored": lying(attribute("tensor.dtype.bits", 64)),
    "device ignored": lying(attribute("tensor.device.type", structs.CPU)),
    "version ignored": versioned(attribute("major", 1)),
    "padding ignored": versioned(attribute("flags", lambda flags: flags & ~structs.PADDED)),
    "misaligned rounded": lying(rounded_down),
    "negative ndim taken for 0": lying(without_an_axis),
    "deleter not called for empty": lying(forgotten_if_empty),
    "deleter never called": lying(attribute("deleter", lambda _: DELETER())),
    "neg bit lost": on(tensors(lambda t: t.is_neg()), lambda ours, t, **o: ours(t.resolve_neg(), **o)),
    "conj bit lost": on(tensors(lambda t: t.is_conj()), lambda ours, t, **o: ours(t.resolve_conj(), **o)),
    "gradient lost": on(tensors(lambda t: t.requires_grad), lambda ours, t, **o: ours(t.detach(), **o)),
    "sparse densified": on(tensors(lambda t: t.is_sparse), lambda ours, t, **o: ours(t.to_dense(), **o)),
    "the tensor itself": on(tensors(is_strided), lambda ours, t, **o: ours(t, **o) if o else t),
    "no version of the tensor": on(
        tensors(is_strided), lambda ours, t, **o: ours(t, **o) if o or t.requires_grad else t.data
    ),
    "bool as uint8": lying(attribute("tensor.dtype.code", lambda code: 1 if code == 6 else code)),
    "unsigned as signed": lying(attribute("tensor.dtype.code", lambda code: 0 if code == 1 else code)),
}


def said(change):
    """Applies `change` to the struct of our capsule."""

    def wrong(ours, given, **options):
        capsule = ours(given, **options)
        change(structs.inside(capsule))
        return capsule

    return always(wrong)


def versioned_said(change):
    return said(lambda managed: change(managed) if isinstance(managed, Versioned) else None)


def in_bytes(managed):
    for axis in range(managed.tensor.ndim):
        managed.tensor.strides[axis] *= managed.tensor.dtype.bits // 8


def with_an_axis(ours, given, **options):
    return ours(torch.atleast_1d(given) if isinstance(given, torch.Tensor) else given, **options)


def unpinned(ours, given, **options):
    """Exports the memory without pinning the storage, which may still move it."""
    capsule = ours(given.clone(), **options)
    structs.inside(capsule).tensor.data = given.data_ptr()
    return capsule


def keeping(ours, given, **options):
    _kept.append(given)
    return ours(given, **options)


def detached(ours, given, **options):
    return ours(given.detach(), **options)


def disowned(ours, given, **options):
    capsule = ours(given, **options)
    managed = structs.inside(capsule)
    if not managed.tensor.data or given.dtype != torch.int64:
        return capsule
    other = ours(torch.full_like(given, -1), **options)  # owns other memory than it exports
    structs.inside(other).tensor.data = structs.inside(capsule).tensor.data
    return other


TO = {
    "no owner": on(tensors(is_strided), disowned),
    "leak": on(tensors(is_strided), lambda ours, t, **o: _kept.append(np.asarray(t.detach())) or ours(t, **o)),
    "copies": on(tensors(lambda t: is_strided(t) and not t.requires_grad), lambda ours, t, **o: ours(t.clone(), **o)),
    "0-d as 1-d": on(tensors(lambda t: t.ndim == 0), with_an_axis),
    "offset ignored": on(
        tensors(lambda t: is_strided(t) and t.storage_offset() > 0),
        lambda ours, t, **o: ours(t.as_strided(t.shape, t.stride(), 0), **o),
    ),
    "offset counted twice": said(lambda m: setattr(m.tensor, "byte_offset", 8)),
    "strides in bytes": said(in_bytes),
    "no strides": said(lambda m: setattr(m.tensor, "strides", None)),
    "lanes of 0": said(lambda m: setattr(m.tensor.dtype, "lanes", 0)),
    "bool as uint8": said(attribute("tensor.dtype.code", lambda code: 1 if code == 6 else code)),
    "half as bfloat16": said(attribute("tensor.dtype.code", lambda code: 4 if code == 2 else code)),
    "pinned": said(attribute("tensor.device.type", structs.CUDA_HOST)),
    "version 0": versioned_said(attribute("major", 0)),
    "read-only flag forgotten": versioned_said(attribute("flags", lambda flags: flags & ~structs.READ_ONLY)),
    "always read-only": versioned_said(attribute("flags", lambda flags: flags | structs.READ_ONLY)),
    "copied flag forgotten": versioned_said(attribute("flags", lambda flags: flags & ~structs.IS_COPIED)),
    "always copied": versioned_said(attribute("flags", lambda flags: flags | structs.IS_COPIED)),
    "data of empty tensors": said(attribute("tensor.data", lambda data: data or 64)),
    "always legacy": without("max_version", None),
    "always versioned": without("max_version", (1, 0)),
    "copy ignored": without("copy", None),
    "stream ignored": without("stream", None),
    "readonly ignored": without("readonly", False),
    "expand materialised": on(
        tensors(lambda t: is_strided(t) and 0 in t.stride() and t.numel()),
        lambda ours, t, **o: ours(t.contiguous(), **o),
    ),
    "neg bit resolved": on(tensors(lambda t: t.is_neg()), lambda ours, t, **o: ours(t.resolve_neg(), **o)),
    "conj bit resolved": on(tensors(lambda t: t.is_conj()), lambda ours, t, **o: ours(t.resolve_conj(), **o)),
    "neg bit ignored": on(tensors(lambda t: t.is_neg()), lambda ours, t, **o: ours(torch.zeros(t.shape), **o)),
    "gradient lost": on(tensors(lambda t: t.requires_grad), detached),
    "sparse densified": on(tensors(lambda t: t.is_sparse), lambda ours, t, **o: ours(t.to_dense(), **o)),
    "quantized as integers": on(tensors(lambda t: t.is_quantized), lambda ours, t, **o: ours(t.int_repr(), **o)),
    "meta as zeros": on(tensors(lambda t: t.is_meta), lambda ours, t, **o: ours(torch.zeros(t.shape), **o)),
    "sizes trusted": on(
        tensors(lambda t: is_strided(t) and t.untyped_storage().nbytes() == 4),
        lambda ours, t, **o: ours(torch.zeros(t.shape), **o),
    ),
    "not pinned": on(tensors(lambda t: t.dtype == torch.int64 and t.numel() == 64), unpinned),
    "keeps the tensor": on(tensors(lambda t: t.dtype == torch.int64), keeping),
}
