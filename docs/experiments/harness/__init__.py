"""Runs the experiments: what they have in common.

A run.py declares an `Experiment` for `driver`, with the function that measures. Beside it lies report.py, which shows a
result for a terminal and README.md: ``answer(result)`` in one sentence, ``tables(result)``, ``sentences(result)``, see
`results`; ``draw(result, path)`` makes the plot, which `PLOT` describes to those who do not see it: up to a semicolon,
its first part. `MEASURED` names the code that the result is about, see `age`.
"""
