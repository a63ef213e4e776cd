"""Runs a function for each operator, in as many processes as there are processors."""

import faulthandler
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from opdb import FOLDER

_task: tuple[Callable[[Any], Any], list[Any]]


def in_processes(function: Callable[[Any], Any], operators: list[Any]) -> Iterator[Any]:
    """The results of `function` for the operators, in order, from as many processes as there are processors."""
    global _task
    _task = function, operators
    # Forked processes inherit the loaded modules and the operators, which cannot be pickled.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context, initializer=_quiet) as pool:
        yield from pool.map(_one, range(len(operators)), chunksize=4)


def _quiet() -> None:
    """Sends the output of C++, warnings that samples cause on purpose, to a file, but not the trace of a crash."""
    faulthandler.enable(os.dup(2))
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.dup2(os.open(FOLDER / "stderr.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)


def _one(i: int) -> Any:
    function, operators = _task
    return function(operators[i])
