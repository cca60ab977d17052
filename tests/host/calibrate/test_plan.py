"""The run of the list: a failed item is missing with its reason, and other results stay."""

import pytest

from host.calibrate.gpu import plan
from host.calibrate.reading import Absent, Book, Missing, number


class _Device:
    def warm_up(self):
        pass


class _Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Make items take ten seconds for each reading, or fail."""
    clock = _Clock()

    def good(name):
        def item(device):
            for nth in range(3):
                clock.now += 10
                yield number(f"{name}.{nth}", nth, "counted")
        return item

    def failing(error):
        def item(device):
            yield number(f"{type(error).__name__.lower()}.first", 1, "before it failed")
            raise error
        return item

    def partly(device):
        yield Absent("partly.some", "no reason")
        yield number("partly.other", 1, "there")

    monkeypatch.setattr(plan, "ITEMS", {
        "a": good("a"), "missing": failing(Missing("no driver")),
        "runtimeerror": failing(RuntimeError("CUDA error:\n  illegal address")),
        "keyboardinterrupt": failing(KeyboardInterrupt()), "partly": partly, "b": good("b")})
    return clock


def test_what_fails_is_missing_and_the_rest_goes_on(clock):
    book, kept, said = Book(), [], []
    names = ["a", "missing", "runtimeerror", "partly", "b"]
    plan.run(_Device(), names, book, keep=lambda: kept.append(len(book.readings)),
             progress=said.append, clock=clock)
    assert book.missing == {"missing": "no driver", "partly.some": "no reason",
                            "runtimeerror": "RuntimeError: CUDA error: illegal address"}
    assert set(book.readings) == {"a.0", "a.1", "a.2", "missing.first", "runtimeerror.first",
                                  "partly.other", "b.0", "b.1", "b.2"}
    assert kept == [3, 4, 5, 6, 9]
    assert said[:3] == ["a", "a.0", "a.1"]


def test_nothing_begins_after_the_time_is_up(clock):
    book = Book()
    plan.run(_Device(), ["a", "partly", "b"], book, 20.0, clock=clock)
    assert set(book.readings) == {"a.0", "a.1"}
    assert book.missing == {name: "the time budget is used up" for name in ("a", "partly", "b")}


def test_an_interrupted_run_keeps_what_it_has(clock):
    book, kept = Book(), []
    with pytest.raises(KeyboardInterrupt):
        plan.run(_Device(), ["a", "keyboardinterrupt", "b"], book,
                 keep=lambda: kept.append(set(book.readings)), clock=clock)
    assert kept[-1] == {"a.0", "a.1", "a.2", "keyboardinterrupt.first"}


def test_an_item_measured_again_starts_anew(clock):
    book = Book()
    plan.run(_Device(), ["a"], book, clock=clock)
    plan.run(_Device(), ["a"], book, 10.0, clock=clock)
    assert set(book.readings) == {"a.0"} and book.missing == {"a": "the time budget is used up"}


def test_wanted_items_come_in_their_order(clock):
    assert plan.wanted(None) == list(plan.ITEMS)
    assert plan.wanted("b, a") == ["a", "b"]
    for text in ("c", "a,c", "", ","):
        with pytest.raises(ValueError, match=r"only must be one of a, missing, .* not "):
            plan.wanted(text)
