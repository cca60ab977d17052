"""Mini-batching in plain Python, sample by sample, and random samples for it."""

from collections import Counter
from itertools import chain

import numpy as np
from hypothesis import strategies as st

from host.samples import Samples
from tests.host.test_samples import bags


def key_lists(samples):
    """Return the keys of each sample, with repetitions."""
    return [[key for bag in one for key in bag] for one in bags(samples)]


def top_edges(samples, among, most=None):
    """Return the keys that join most of the samples ``among``; ties go to the earliest arrival."""
    joined = Counter(key for i in among for key in dict.fromkeys(samples[i]))
    arrival = {key: at for at, key in enumerate(dict.fromkeys(chain(*samples)))}
    ranked = sorted(joined, key=lambda key: (-joined[key], arrival[key]))
    return {key for key in ranked if joined[key] >= 2} if most is None else {
        key for key in ranked[:most] if joined[key] >= 2}


def most_often(samples, left, edges, size):
    """Return the samples that appear most often in ``edges``: lines 12 to 20 of algorithm 1."""
    appearances = {i: len(set(samples[i]) & edges) for i in left}
    return sorted(left, key=lambda i: (-appearances[i], i))[:size]


def plain_graph(samples, size, hyperedges, refinements):
    left, batches = list(range(len(samples))), []
    while left:
        chosen = most_often(samples, left, top_edges(samples, left, hyperedges), size)
        for _ in range(refinements):
            chosen = most_often(samples, left, top_edges(samples, chosen), size)
        batches.append(chosen)
        left = [i for i in left if i not in chosen]
    return batches


def plain_greedy(samples, size):
    left, batches = list(range(len(samples))), []
    while left:
        chosen = [left.pop(0)]
        inside = set(samples[chosen[0]])
        while left and len(chosen) < size:
            best = max(left, key=lambda i: (len(set(samples[i]) & inside), -i))
            left.remove(best)
            chosen.append(best)
            inside |= set(samples[best])
        batches.append(chosen)
    return batches


def plain_sort(samples, size):
    order = sorted(range(len(samples)), key=lambda i: samples[i])
    return [order[at:at + size] for at in range(0, len(order), size)]


@st.composite
def few_samples(draw, most=40):
    """Return samples of 1 to 3 tables with few rows: bags are empty, repeated, or equal to
    others."""
    tables = draw(st.integers(1, 3))
    bag = st.lists(st.integers(0, 5), max_size=3)
    rows = draw(st.lists(st.tuples(*[bag] * tables), min_size=1, max_size=most))
    lengths = np.array([[len(one) for one in sample] for sample in rows], np.int32)
    flat = [row for sample in rows for one in sample for row in one]
    return Samples(np.arange(len(rows), dtype=np.float32)[:, None],
                   np.zeros(len(rows), np.float32), lengths,
                   np.repeat(np.tile(np.arange(tables, dtype=np.int32), len(rows)),
                             lengths.reshape(-1)), np.array(flat, np.int64))
