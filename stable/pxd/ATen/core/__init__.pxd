# Mirrors of the headers in ATen/core.
