"""Items made ahead: the same ones in the same order, one of them while the last is used."""

import threading

import pytest

from sim.run.prefetch import Ahead


@pytest.mark.parametrize("beside", [False, True])
def test_items_come_in_order_and_then_none(beside):
    makers = set()

    def items():
        for item in range(20):
            makers.add(threading.get_ident())
            yield item

    with Ahead(items(), beside=beside) as ahead:
        assert [ahead.take() for _ in range(23)] == [*range(20), None, None, None]
    assert len(makers) == 1 and (threading.get_ident() in makers) != beside
    assert ahead.seconds > 0


def test_the_next_item_is_made_while_one_is_used():
    made = threading.Semaphore(0)

    def items():
        for item in range(3):
            made.release()
            yield item

    with Ahead(items(), beside=True) as ahead:
        assert ahead.take() == 0
        assert all(made.acquire(timeout=20) for _ in range(2))
        assert not made.acquire(timeout=0.05)  # and no more than that


def test_without_a_thread_nothing_is_made_before_it_is_wanted():
    made = []

    def items():
        for item in range(3):
            made.append(item)
            yield item

    with Ahead(items(), beside=False) as ahead:
        assert made == [] and ahead.take() == 0 and made == [0]


def test_what_is_taken_before_is_made_by_the_caller():
    makers = []

    def items():
        for item in range(3):
            makers.append(threading.get_ident())
            yield item

    ahead = Ahead(items(), beside=True)
    assert ahead.take() == 0
    with ahead:
        assert [ahead.take(), ahead.take(), ahead.take()] == [1, 2, None]
    here = threading.get_ident()
    assert makers[0] == here and here not in makers[1:]


@pytest.mark.parametrize("beside", [False, True])
def test_an_error_comes_out_in_its_turn(beside):
    def items():
        yield 0
        yield 1
        raise ZeroDivisionError

    with Ahead(items(), beside=beside) as ahead:
        assert [ahead.take(), ahead.take()] == [0, 1]
        with pytest.raises(ZeroDivisionError):
            ahead.take()
        assert ahead.take() is None  # a generator that raised is over
