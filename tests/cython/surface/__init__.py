"""Calls of everything that the generator declares."""
