"""Bags with gradients: packets from the host, and lists for the GPU with bags of both kinds."""

import numpy as np
import pytest

from host.wire.bag_gradients import BagGradients, gradient_bag_packets, split_lists
from host.wire.bags import BagList, bag_words
from host.wire.packets import parse_header, payload_records
from rtl.formats import GradientHead, Opcode


def _bags(rng, n: int) -> BagList:
    wide, lengths = rng.random(n) < 0.3, rng.integers(1, 20, n)
    most = np.repeat(np.where(wide, 1 << 36, 1 << 32), lengths)
    return BagList(rng.integers(0, 1 << 12, n), lengths, rng.integers(0, most),
                   rng.integers(0, 1 << 16, n), wide)


def _gradients(rng, n: int, dimension: int) -> BagGradients:
    return BagGradients(_bags(rng, n), rng.integers(0, 64, n),
                        rng.standard_normal((n, dimension)).astype(np.float32))


def _same(one: BagGradients, other: BagGradients) -> bool:
    return np.array_equal(bag_words(one.bags), bag_words(other.bags)) and (
        one.sources.tolist() == other.sources.tolist()
        and one.vectors.tobytes() == other.vectors.tobytes())


@pytest.mark.parametrize("dimension", [4, 8, 16, 128])
def test_packets_and_lists(dimension):
    rng = np.random.default_rng(dimension)
    given, plain = _gradients(rng, 40, dimension), _bags(rng, 30)
    packets = gradient_bag_packets(given, node=3, step=9, payload_beats=22)
    words = []
    for packet in packets:
        head = parse_header(packet[0])
        assert (head.opcode, head.step) == (Opcode.BAG_GRADIENTS, 9) and len(packet) <= 23
        words.append(payload_records(packet[1:], head.count))
    assert len(packets) > 1
    # A list contains bags of both kinds in any order.
    first, second = bag_words(plain), np.concatenate(words)
    left, found = split_lists(np.concatenate((first, second, first)), dimension)
    assert left.tolist() == [*first.tolist(), *first.tolist()] and _same(found, given)
    left, found = split_lists(first, dimension)
    assert left.tolist() == first.tolist() and not len(found)


def test_bounds():
    rng = np.random.default_rng(1)
    given = _gradients(rng, 3, 16)
    words = given.words
    assert [int(head) >> GradientHead["gradient"].offset & 1 for head in words[given.places]] == [
        1, 1, 1]
    with pytest.raises(ValueError, match=r"words, but .* are left"):
        split_lists(words[:-1], 16)
    weighted = np.array([1 | 1 << 17 | 1 << GradientHead["gradient"].offset, 5, 0, *[0] * 8],
                        np.uint64)
    with pytest.raises(ValueError, match="bag 0 of a list has weights and a gradient"):
        split_lists(weighted, 16)
    given.bags.landings[1] = 1 << 16
    with pytest.raises(ValueError, match="samples of a node's share must be at most 65536 in "
                       "training with tables that pool at their owner, not 65537"):
        gradient_bag_packets(given, node=0, step=0, payload_beats=22)
