"""Thread pool: every item is handled once, by its own thread unless that thread is busy."""

import threading
from collections import Counter

import pytest

from sim.cluster.crew import Crew


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_item_is_done_once(threads):
    done: Counter = Counter()
    lock = threading.Lock()

    def action(item: int) -> None:
        with lock:
            done[item] += 1

    with Crew(range(5), threads) as crew:
        for _ in range(20):
            crew.each(action)
    assert done == dict.fromkeys(range(5), 20)


def test_items_stay_with_their_threads():
    """Two threads that meet at a barrier in each pair of items must each have one item of the
    pair."""
    meet = threading.Barrier(2)
    seen: dict[int, set[int]] = {item: set() for item in range(6)}

    def action(item: int) -> None:
        seen[item].add(threading.get_ident())
        meet.wait(10)

    with Crew(range(6), 2) as crew:
        for _ in range(10):
            crew.each(action)
    assert all(len(threads) == 1 for threads in seen.values())
    assert seen[0] == seen[2] == seen[4] == {threading.get_ident()} != seen[1]


def test_a_free_thread_helps():
    """The first item waits for all others, so the other thread must take them over."""
    others = threading.Semaphore(0)
    helped = []

    def action(item: int) -> None:
        if item:
            helped.append((item, threading.get_ident()))
            others.release()
        else:
            for _ in range(5):
                assert others.acquire(timeout=10)

    with Crew(range(6), 2) as crew:
        crew.each(action)
    assert [item for item, _ in helped] == [1, 3, 5, 4, 2]
    assert len({thread for _, thread in helped} | {threading.get_ident()}) == 2


def test_what_goes_wrong_comes_out():
    def action(item: int) -> None:
        if item == 3:
            raise IndexError("of the action")

    with Crew(range(4), 2) as crew, pytest.raises(IndexError, match="of the action"):
        crew.each(action)
