"""What the experiment "bridges" says about a result, also about one that lacks the newer rows."""

import pytest

import experiments


@pytest.fixture
def report():
    return experiments.load("bridges", "report")


def made(times, instructions):
    """A result with these medians and counts, by what is done and how."""
    return {
        "times": {what: {how: {"median": ns} for how, ns in ways.items()} for what, ways in times.items()},
        "instructions": instructions,
    }


def test_with_arrays_is_compared_with_the_conversions_alone(report):
    what = "two tensors to an array, 1-d"
    times = {what: {"by hand": 50.0, "with_arrays": 90.0, "the conversions alone": 40.0}}
    result = made(times, {what: {"by hand": 500.0, "with_arrays": 1000.0}})
    assert report.sentences(result) == (
        "Two tensors to an array, with_arrays: 2.25 times the time of the conversions alone (to reach: 2.0 times the "
        "time). Two tensors to an array, with_arrays: 1.80 times the time, 2.00 times the instructions by hand."
    )


def test_ratios_of_several_ranks_are_a_range(report):
    times = {f"array from tensor, {n}-d": {"torch": 100.0, "interop": 10.0 + n} for n in range(1, 5)}
    assert report.sentences(made(times, {})) == (
        "Array from tensor, interop: 0.11 to 0.14 times the time of torch (to reach: 0.15 times the time)."
    )


def test_every_way_that_is_compared_is_measured(report):
    measure = report.measure
    timed = [*measure.STATEMENTS, measure.THREAD, measure.OFF]
    measured = {*measure.cases(), *((f"{what}, 1-d", how) for what, how in timed)}
    bars = [(what, ours, theirs) for what, (ours, theirs, _) in measure.BARS.items()]
    pairs = [((what, ours), (what, theirs)) for what, ours, theirs in [*bars, *measure.COMPARED]]
    pairs += measure.CHEAPEST.values()
    for what, how in [*(way for pair in pairs for way in pair), *measure.LIMITS]:
        assert (f"{what}, 1-d", how) in measured
