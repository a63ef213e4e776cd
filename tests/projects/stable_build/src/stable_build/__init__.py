"""A package whose wheel the tests check."""
