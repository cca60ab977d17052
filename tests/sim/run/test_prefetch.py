"""The prefetcher: the same items in the same order, the next item made while an item is used."""

import threading

import pytest

from sim.run.prefetch import Prefetcher


@pytest.mark.parametrize("background", [False, True])
def test_items_come_in_order_and_then_none(background):
    makers = set()

    def items():
        for item in range(20):
            makers.add(threading.get_ident())
            yield item

    with Prefetcher(items(), background=background) as prefetcher:
        assert [prefetcher.take() for _ in range(23)] == [*range(20), None, None, None]
    assert len(makers) == 1 and (threading.get_ident() in makers) != background
    assert prefetcher.seconds > 0


def test_the_next_item_is_made_while_one_is_used():
    made = threading.Semaphore(0)

    def items():
        for item in range(3):
            made.release()
            yield item

    with Prefetcher(items(), background=True) as prefetcher:
        assert prefetcher.take() == 0
        assert all(made.acquire(timeout=20) for _ in range(2))
        assert not made.acquire(timeout=0.05)  # only one item ahead


def test_without_a_thread_nothing_is_made_before_it_is_wanted():
    made = []

    def items():
        for item in range(3):
            made.append(item)
            yield item

    with Prefetcher(items(), background=False) as prefetcher:
        assert made == [] and prefetcher.take() == 0 and made == [0]


def test_what_is_taken_before_is_made_by_the_caller():
    makers = []

    def items():
        for item in range(3):
            makers.append(threading.get_ident())
            yield item

    prefetcher = Prefetcher(items(), background=True)
    assert prefetcher.take() == 0
    with prefetcher:
        assert [prefetcher.take(), prefetcher.take(), prefetcher.take()] == [1, 2, None]
    here = threading.get_ident()
    assert makers[0] == here and here not in makers[1:]


@pytest.mark.parametrize("background", [False, True])
def test_an_error_comes_out_in_its_turn(background):
    def items():
        yield 0
        yield 1
        raise ZeroDivisionError

    with Prefetcher(items(), background=background) as prefetcher:
        assert [prefetcher.take(), prefetcher.take()] == [0, 1]
        with pytest.raises(ZeroDivisionError):
            prefetcher.take()
        assert prefetcher.take() is None  # a generator that raised has ended
