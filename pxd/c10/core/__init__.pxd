# Mirrors of the headers in c10/core.
