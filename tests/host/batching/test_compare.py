"""Comparison of algorithms on the same samples."""

import numpy as np
import pytest

from host.batching import ALGORITHMS, compare, file_order, winner
from host.data.generator import generate
from host.model import MODELS
from host.samples import concatenate
from tests.host.batching.plain import key_lists, plain_greedy
from tests.host.test_samples import random_samples


def test_rows_are_plain_counts():
    samples = random_samples(83, 4, seed=9)
    keys = key_lists(samples)

    def mean(batches):
        return np.mean([len({key for i in chosen for key in keys[i]}) for chosen in batches])

    windows = [list(range(first, min(first + 30, 83))) for first in range(0, 83, 30)]
    runs = [window[at:at + 7] for window in windows for at in range(0, len(window), 7)]
    greedy = [[window[i] for i in chosen] for window in windows
              for chosen in plain_greedy([keys[i] for i in window], 7)]
    rows = {row["algorithm"]: row for row in compare(samples, 7, 30)}
    assert list(rows) == list(ALGORITHMS)
    assert rows["file"]["unique_keys"] == mean(runs) and rows["file"]["saved"] == 0
    assert rows["greedy"]["unique_keys"] == mean(greedy)
    assert rows["greedy"]["saved"] == 1 - mean(greedy) / mean(runs)
    assert {row["mini_batches"] for row in rows.values()} == {len(runs)}
    assert all(row["us_per_mini_batch"] > 0 for row in rows.values())

    def alike(runs):
        return pytest.approx(np.mean([
            1 - len({key for i in run for key in keys[i]}) / sum(len(keys[i]) for i in run)
            for run in runs]))

    assert rows["file"]["first_similarity"] == alike(window[:7] for window in windows)
    assert rows["file"]["last_similarity"] == alike([windows[0][28:], windows[1][28:],
                                                     windows[2][21:]])
    assert rows["file"]["similarity"] == alike(runs)


def test_the_winner_saves_most():
    rows = [{"algorithm": "a", "saved": 0.1}, {"algorithm": "b", "saved": 0.3},
            {"algorithm": "c", "saved": 0.3}]
    assert winner(rows) == "b"


def test_no_samples_are_refused():
    samples = random_samples(3, 2)
    with pytest.raises(ValueError, match="samples must be at least 1, not 0"):
        compare(samples.slice(0, 0), 2)
    assert compare(samples, 2, algorithms={"file": file_order})[0]["mini_batches"] == 2


@pytest.mark.parametrize("name, graph", [("kaggle", 0.2), ("terabyte", 0.2), ("avazu", 0.28)])
def test_unique_keys_saved_of_click_logs(name, graph):
    """Form mini-batches of 128 from 2,048 samples, until a window is drained."""
    samples = concatenate(generate(MODELS[name], 4096, 4))
    rows = {row["algorithm"]: row for row in compare(samples, 128, 2048)}
    assert rows["graph"]["saved"] >= graph
    assert rows["graph"]["saved"] > rows["graph-printed"]["saved"] + 0.05
    assert winner(list(rows.values())) == "greedy"
