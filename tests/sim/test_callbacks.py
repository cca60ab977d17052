"""An exception in a function that C++ calls reaches the test."""

import threading
from ctypes import CFUNCTYPE, c_int

import pytest

from tests.sim.callbacks import nothing_if_raised, raised_in_callbacks


def _wrong(number: int) -> int:
    raise AssertionError(f"call {number}")


CALLBACK = CFUNCTYPE(c_int, c_int)
WRONG = CALLBACK(_wrong)


def test_the_first_exception_comes_out_at_the_end():
    ended = False
    with pytest.raises(AssertionError, match="call 1"), raised_in_callbacks():
        WRONG(1)
        WRONG(2)
        ended = True
    assert ended


def test_an_exception_in_another_thread_comes_out_too():
    thread = threading.Thread(target=WRONG, args=(3,))
    with pytest.raises(AssertionError, match="call 3"), raised_in_callbacks():
        thread.start()
        thread.join()


def test_it_comes_out_in_place_of_what_follows_from_it():
    with pytest.raises(AssertionError, match="call 4") as error, raised_in_callbacks():
        assert WRONG(4) == 5, "compared afterwards"
    assert "compared afterwards" in str(error.value.__cause__)


def test_a_size_is_zero_and_the_exception_comes_out():
    sizes = []
    with pytest.raises(AssertionError, match="call 5"), raised_in_callbacks():
        sizes.append(CALLBACK(nothing_if_raised(_wrong))(5))
    assert sizes == [0]


def test_what_the_block_raises_is_left_alone():
    with pytest.raises(ValueError, match="own"), raised_in_callbacks():
        raise ValueError("own")
