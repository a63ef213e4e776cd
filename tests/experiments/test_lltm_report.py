"""What the report of the experiment `lltm` says of the bar, and its plot of one call."""

import pytest

import experiments
from experiments.harness import plots


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


@pytest.mark.parametrize("count", [3, 6])
def test_no_number_is_on_a_line(report, count):
    """The numbers are below their bars, also where a bar ends just below the line of the products."""
    ways = report.WAYS[:count]
    medians = {way: 55.0 - 2 * index for index, way in enumerate(ways)}
    one = {way: {"median": median, "quartiles": [median, median]} for way, median in medians.items()}
    axes = plots.figure(3).subplots()
    times = {"forward": one, "backward": one, "both": one}
    report.draw_times(axes, {what: of | {"products": {"median": 56.0}} for what, of in times.items()}, "one call")
    axes.figure.draw_without_rendering()
    assert not axes.texts
    labels = list(zip(axes.get_xticks(), axes.get_xticklabels(), strict=True))
    assert all(label.get_window_extent().y1 < axes.bbox.y0 for _, label in labels)
    texts = {round(place, 6): label.get_text().partition("\n") for place, label in labels}
    numbers = {place: number for place, (number, *_) in texts.items() if number}
    assert [kind for *_, kind in texts.values() if kind] == ["forward", "backward"]
    bars = {round(bar.get_x() + bar.get_width() / 2, 6): f"{bar.get_height():.0f}" for bar in axes.patches}
    assert numbers == bars
    assert len(bars) == 2 * count
