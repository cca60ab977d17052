"""The comparison on invented figures, worked out by hand."""

import pytest

from tests.gen.timing.public.comparison import compare, spearman
from tests.gen.timing.public.designs import Design, Published


def _figure(mhz, kind="maximum", family="UltraScale+", grade=-2):
    return Published("part", family, grade, mhz, kind, "alone", "Vivado", "README.md")


def _design(name, *figures):
    return Design(name, "", "a/b", "0" * 40, "MIT", "top", ("clk",), figures)


def test_an_error_is_the_estimate_over_the_figure():
    comparison = compare([_design("a", _figure(400))], {"a": (500, 300, 200)})
    (row,) = comparison.rows
    assert row.errors == (0.25, -0.25, -0.5)  # exact in binary
    assert row.same_silicon and not row.bound
    assert comparison.median_error == {"optimistic": 0.25, "middle": -0.25, "pessimistic": -0.5}
    assert comparison.rank["middle"] is None  # one design has no rank


def test_a_bound_refutes_the_cases_below_it_and_counts_in_nothing_else():
    comparison = compare([_design("a", _figure(250, "met"))], {"a": (500, 250, 200)})
    (row,) = comparison.rows
    assert row.bound and row.errors == (None, None, pytest.approx(-0.2))
    assert comparison.refuted == {"optimistic": 0, "middle": 0, "pessimistic": 1}
    assert comparison.median_error["pessimistic"] is None and comparison.ranked == ()


def test_the_rank_is_over_designs_and_leaves_other_families_out():
    designs = [
        _design("slow", _figure(200), _figure(100, family="UltraScale")),
        _design("mid", _figure(290), _figure(310, grade=-3), _figure(900, "met")),
        _design("fast", _figure(400, "achieved", grade=-1)),
        _design("old", _figure(700, family="UltraScale")),
        _design("untried", _figure(300))]
    comparison = compare(designs, {"slow": (300, 200, 100), "mid": (600, 300, 150),
                                   "fast": (500, 400, 120), "old": (900, 800, 700)})
    # By the figures: slow < mid < fast (200, 300, 400); "old" has rows, but no rank.
    assert comparison.ranked == ("slow", "mid", "fast")
    assert comparison.missing == ("untried",)
    assert len(comparison.rows) == 7
    # Optimistic and pessimistic exchange the last two: 1 - 6 * (0 + 1 + 1) / (3 * 8) = 0.5.
    assert comparison.rank == {"optimistic": pytest.approx(0.5), "middle": pytest.approx(1),
                               "pessimistic": pytest.approx(0.5)}
    assert not comparison.rows[1].same_silicon and not comparison.rows[5].same_silicon


def test_equal_values_share_the_mean_of_their_ranks():
    # Ranks 1, 2.5, 2.5, 4 beside 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
    assert spearman([1, 7, 7, 9], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert spearman([3, 2, 1], [10, 20, 30]) == pytest.approx(-1)
    assert spearman([1, 2], [1, 2]) is None
    assert spearman([1, 1, 1], [1, 2, 3]) is None
    with pytest.raises(ValueError, match="lengths must be equal, not 2 and 3"):
        spearman([1, 2], [1, 2, 3])


@pytest.mark.parametrize(("estimates", "complaint"), [
    ({"b": (3, 2, 1)}, "estimates: 'b' is no design"),
    ({"a": (1, 2, 3)}, r"estimates of 'a' must fall from case to case .* not \(1, 2, 3\)"),
    ({"a": (3, 2, 0)}, r"must fall from case to case and be above 0, not \(3, 2, 0\)"),
])
def test_estimates_that_cannot_be_are_refused(estimates, complaint):
    with pytest.raises(ValueError, match=complaint):
        compare([_design("a", _figure(400))], estimates)
