"""What the benchmarks come to: medians, ranges, targets and growth."""

from __future__ import annotations

import pytest

from bench.figures import at_least, at_most, exponent, figure, percentile, ratios


def test_a_figure_is_the_median_of_its_samples_with_their_range():
    found = figure("f", [3.0, 1.0, 2.0], "ms")
    assert (found.low, found.value, found.high, found.meets) == (1.0, 2.0, 3.0, None)


@pytest.mark.parametrize(("samples", "meets"), [([0.5], True), ([0.4, 0.6], True), ([0.49], False)])
def test_a_target_is_met_by_the_median(samples, meets):
    assert at_least("f", samples, "x", 0.5).meets is meets
    assert at_most("f", [1 - sample for sample in samples], "x", 0.5).meets is meets


def test_each_repeat_is_compared_with_the_one_beside_it():
    assert ratios([1.0, 9.0], [2.0, 3.0]) == [0.5, 3.0]
    with pytest.raises(ValueError, match="argument"):
        ratios([1.0], [2.0, 3.0])


@pytest.mark.parametrize(
    ("points", "grows"),
    [
        ([(1, 5), (10, 5), (100, 5)], 0),
        ([(1, 5), (10, 50), (100, 500)], 1),
        ([(2, 1), (8, 16)], 2),
        ([(1, 1), (10, 100), (100, 100)], 2),
    ],
)
def test_growth_is_that_of_the_steepest_way_from_the_first_point(points, grows):
    assert exponent(points) == pytest.approx(grows)


def test_a_percentile_is_one_of_the_samples():
    samples = [float(number) for number in range(100)]
    assert percentile(samples, 99) == 99
    assert percentile(samples, 50) == 50
    assert percentile([4.0], 99) == 4
