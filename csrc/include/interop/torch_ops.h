// Python's torch.ops, whose objects outlive an operator when its module is executed again.
#pragma once

#include <Python.h>

#include <string>

#include "interop/owned_ref.h"

namespace interop {

// Private names of torch that are missing make it do less, and raise nothing.
inline constexpr const char* FORGET = R"(
import sys
import torch

class LookedUpAgain:
    """What an object that was taken from torch.ops calls: it looks the operator up, and keeps the object's hash."""

    def __init__(self, old, find):
        self.old, self.find = old, find

    def __call__(self, /, *args, **kwargs):
        return self.find()(*args, **kwargs)

    def __hash__(self):
        return hash(self.old)

def forget(space, name, overload):
    schemas = getattr(sys.modules.get("torch.fx.operator_schemas"), "_SCHEMA_TO_SIGNATURE_CACHE", {})
    schemas.pop((f"{space}::{name}", overload), None)
    namespace = vars(torch.ops).get(space)
    packet = vars(namespace).get(name) if namespace else None
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return

    def find_packet():
        found = getattr(getattr(torch.ops, space), name)
        if found is packet:  # somebody has put it back
            del vars(namespace)[name]
            found = getattr(namespace, name)
        return found

    class Packet(torch._ops.OpOverloadPacket):
        """A packet that makes no overloads, which would belong to the new operator, but gives those of its packet."""

        def __getattr__(self, key):
            return getattr(find_packet(), key)

    for key, kept in list(vars(packet).items()):
        if isinstance(kept, torch._ops.OpOverload):
            def find(key=key):
                return getattr(find_packet(), key)

            def find_kernel(key=key):
                return find(key)._op_dk

            vars(kept).pop("_handle", None)  # the dispatcher's, which is found again when it is needed
            kept._op, kept._op_dk = LookedUpAgain(kept._op, find), LookedUpAgain(kept._op_dk, find_kernel)
    packet._op = LookedUpAgain(packet._op, find_packet)
    packet.__class__ = Packet
    del vars(namespace)[name]
    if name in getattr(namespace, "_dir", ()):
        namespace._dir.remove(name)
)";

// Removes an operator from torch.ops.NAMESPACE, from the list of names there, and from the signatures that torch.fx has
// cached. Objects that were taken from there before look the operator up again at each call: they point to an operator
// that is about to be gone. torch.library does the first three from torch 2.13 on, and not the last.
// Clears errors, so none may be set.
inline void forget_in_python(const std::string& operator_name) {
  const size_t colons = operator_name.find("::");
  const size_t dot = operator_name.find('.', colons);
  const std::string space = operator_name.substr(0, colons);
  const std::string name = operator_name.substr(colons + 2, dot - colons - 2);
  const std::string overload = dot == std::string::npos ? "" : operator_name.substr(dot + 1);
  // From CPython 3.12 on, making a subclass of a generic class imports typing, and PyImport_Import takes the builtins
  // from the globals.
  const OwnedRef globals(
      Py_BuildValue("{sOss}", "__builtins__", PyEval_GetBuiltins(), "__name__", "interop.torch_ops"));
  const OwnedRef code(Py_CompileString(FORGET, "interop/torch_ops.h", Py_file_input));
  const OwnedRef done(code && globals ? PyEval_EvalCode(code.get(), globals.get(), globals.get()) : nullptr);
  PyObject* forget = done ? PyDict_GetItemString(globals.get(), "forget") : nullptr;
  const OwnedRef result(
      forget ? PyObject_CallFunction(forget, "sss", space.c_str(), name.c_str(), overload.c_str()) : nullptr);
  PyErr_Clear();
}

}  // namespace interop
