"""What the report of the experiment `lltm` says of the bar."""

import pytest

import experiments


@pytest.fixture(scope="module")
def report():
    return experiments.load("lltm", "report")


def times(report, **medians):
    """The times of a case: 100 microseconds for each way that is not given."""
    ways = dict.fromkeys((*report.WAYS, "products"), 100.0) | medians
    return {"both": {way: {"median": median} for way, median in ways.items()}}


def test_the_cases_that_miss_the_bar_are_named(report):
    met = times(report, **{"Cython fused": 75.0, "Cython": 10.0})
    missed = times(report, **{"C++": 50.0, "Cython fused": 40.0, "products": 30.0})
    said = report.bar({"times": {"1, 2, 3": {"1 thread": met, "2 threads": missed}}})
    assert said.endswith(
        "meets it in 1 of 2 cases. It misses the bar at 1, 2, 3 on 2 threads, 0.80 (products alone 0.60)."
    )
    assert report.bar({"times": {"1, 2, 3": {"1 thread": met}}}).endswith("meets it in 1 of 1 cases.")
