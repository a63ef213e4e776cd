# Mirrors of our own headers, csrc/include/interop.
