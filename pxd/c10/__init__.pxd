# Mirrors of torch's c10 headers.
