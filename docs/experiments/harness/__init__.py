"""Runs the experiments: what they have in common.

A run.py declares an `Experiment` for `driver`, with the function that measures. Beside it lies report.py, which shows a
result: ``tables(result)`` and ``sentences(result)`` for a terminal and README.md, see `results.section`, and
``draw(result, path)`` for the plot.
"""
