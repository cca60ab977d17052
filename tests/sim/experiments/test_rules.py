"""Rules by which claims are judged."""

import pytest

from sim.experiments.claims.rules import (
    Ruling,
    above,
    factor_of,
    gains,
    settled,
    together,
    trend,
    unchanged,
)
from sim.experiments.claims.words import share
from sim.experiments.figures.estimate import Estimate, mean_of


def _of(*values: float) -> Estimate:
    return Estimate(tuple(enumerate(values, 1)))


@pytest.mark.parametrize(("claimed", "found", "agrees"), [
    (2.1, 10.0, False), (2.1, 2.63, False), (2.1, 2.62, True), (2.1, 2.1, True),
    (2.1, 1.58, True), (2.1, 1.57, False), (2.1, 1.0, False),
    # No change at all is within 25 % of 1.2, but is not a gain.
    (1.2, 1.0, False), (1.2, 1.04, False), (1.2, 1.06, True), (1.2, 1.5, True), (1.2, 1.51, False),
    (1.1, 0.9, False), (1.1, 1.37, True)])
def test_a_factor_agrees_within_a_quarter_to_either_side(claimed, found, agrees):
    ruling = factor_of(claimed, _of(found))
    assert ruling.agrees is agrees and f"{found:.2f}x" in ruling.why


def test_a_factor_without_a_value_has_no_ruling():
    assert factor_of(2.1, None) == Ruling(None)


def test_gains():
    found = {"a": _of(1.2), "b": _of(1.0)}
    assert gains(found, mean_of(found)).agrees is True
    assert gains({"a": _of(1.05), "b": _of(1.02)}, _of(1.035)).agrees is False
    lost = gains({"a": _of(2.0), "b": _of(0.99), "c": None}, None)
    assert lost.agrees is False and lost.why == "b loses (0.99x)."
    assert gains({"a": _of(2.0), "b": _of(0.9999)}, _of(1.5)).agrees is True
    assert gains({"a": _of(2.0), "b": None}, None).agrees is None


def test_unchanged():
    assert unchanged({"a": _of(1.049), "b": _of(0.96)}).agrees is True
    assert unchanged({"a": _of(1.0), "b": _of(0.94)}).agrees is False
    assert unchanged({"a": _of(1.06), "b": None}).agrees is False
    assert unchanged({"a": _of(1.0), "b": None}).agrees is unchanged({}).agrees is None


@pytest.mark.parametrize(("values", "rises", "noise", "agrees"), [
    ((1, 2, 2), True, 0, True), ((3, 2, 1), False, 0, True), ((3, 2, 1), True, 0, False),
    ((2, 2, 2), True, 0, False), ((2, 2, 2), False, 0, False),
    # A single step within the noise is allowed; two steps, or a larger step, are not.
    ((1, 2, 1.99, 3), True, 0.01, True), ((1, 2, 1.99, 3), True, 0.001, False),
    ((1, 2, 1.99, 3), True, 0.0, False), ((1, 2, 1.99, 3, 2.99, 4), True, 0.01, False),
    # The ends must differ for any noise.
    ((1, 0.99), True, 0.5, False), ((3, 2, 2.01, 1), False, 0.01, True)])
def test_a_trend_may_have_one_step_within_the_noise(values, rises, noise, agrees):
    assert trend([_of(value) for value in values], rises, noise).agrees is agrees


def test_a_trend_compares_values_of_the_same_seeds():
    # The mean over all seeds of the second would be above the third.
    assert trend([_of(1.0), _of(2.0, 4.0), _of(2.5)], True).agrees is True
    assert trend([_of(1.0), Estimate(((2, 2.0),))], True).agrees is None


def test_a_trend_with_a_value_missing_is_not_judged():
    assert trend([_of(1), None, _of(2)], True).agrees is trend([_of(1)], True).agrees is None


def test_one_part_that_differs_settles_it():
    assert settled([True, True]) is True and settled([True, None]) is None
    assert settled([None, False]) is False and settled([]) is None


def test_the_reasons_of_what_settles_it_are_given_once():
    found = together({"a": Ruling(True, "it rises"), "b": Ruling(False, "it falls"),
                      "c": Ruling(False, "it falls"), "d": Ruling(False, "it stays")})
    assert found == Ruling(False, "b, c: it falls; d: it stays")


def test_above_is_what_decimals_show():
    assert above(_of(1.26), _of(1.25)) is True and above(_of(1.254), _of(1.25)) is False
    assert above(None, _of(1.0)) is None


def test_shares_in_words():
    assert [share(_of(value)) for value in (0.254, 0.0123, 0.0031, -0.00001, 0.0, -0.004)] == [
        "25%", "1%", "0.3%", "0%", "0%", "-0.4%"]
    assert share(None) == "n/a"
