"""A package whose wheel the tests look at."""
