"""Rules of generated bags: each is compared with the measurement or definition that it imitates."""

from dataclasses import replace

import numpy as np
import pytest

from host.data.draws import request_of
from host.data.generator import generate
from host.data.rules import TRACE_SAMPLES, USES
from host.model import RULES, Model, load_model
from host.samples import Samples, concatenate


def _model(rule: str, rows: int = 1_000_000, bag: tuple[int, int] = (4, 4), **fields) -> Model:
    return Model((rows, rows), 16, 1, (16,), (1,), bags=(bag, bag), rule=rule, **fields)


def _bags(samples: Samples, table: int) -> list[tuple[int, ...]]:
    ends = samples.bag_offsets
    return [tuple(samples.rows[ends[at]:ends[at + 1]].tolist())
            for at in range(table, samples.bag_lengths.size, samples.table_count)]


@pytest.mark.parametrize("rule", RULES)
def test_samples_do_not_depend_on_chunks(rule):
    model = _model(rule, bag=(0, 5), requests=(3, 5), request_tables=(1,))
    whole = concatenate(generate(model, 100, 7))
    parts = concatenate(generate(model, 100, 7, chunk=9))
    for name in ("dense", "labels", "bag_lengths", "rows"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))
    assert whole.rows.min() >= 0 and whole.rows.max() < 1_000_000


@pytest.mark.parametrize("rule", RULES)
def test_a_table_without_keys_leaves_the_others_unchanged(rule):
    model = replace(_model(rule), bags=((4, 4), (0, 0)))
    found, other = (concatenate(generate(each, 50, 7)) for each in (model, _model(rule)))
    assert found.bag_lengths.tolist() == [[4, 0]] * 50
    assert np.array_equal(found.rows, other.rows[other.tables == 0])


def test_equal_first_keys_have_equal_bags_and_the_further_keys_are_uniform():
    samples = concatenate(generate(_model("first_key"), 20_000, 1))
    bags = _bags(samples, 0)
    by_first: dict[int, set] = {}
    for bag in bags:
        by_first.setdefault(bag[0], set()).add(bag)
    assert len(by_first) < 0.8 * len(bags) and all(len(found) == 1 for found in by_first.values())
    further = [row for found in by_first.values() for row in next(iter(found))[1:]]
    quarters = np.bincount(np.array(further) // 250_000, minlength=4) / len(further)
    assert quarters == pytest.approx([0.25] * 4, abs=0.01)


def test_keys_drawn_alone_are_as_skewed_as_the_first_and_independent_of_it():
    samples = concatenate(generate(_model("drawn"), 20_000, 1))
    bags = np.array(_bags(samples, 0))
    distinct = [len(np.unique(bags[:, nth])) for nth in range(4)]
    assert distinct[1:] == pytest.approx([distinct[1]] * 3, rel=0.03)
    assert len(np.unique(bags, axis=0)) > 0.98 * len(bags) > distinct[1]


def test_uses_of_rows_are_those_of_the_trace():
    found = concatenate(generate(replace(_model("histogram", bag=(12, 20)), rows=(1_000_000,),
                                         bags=((12, 20),)), TRACE_SAMPLES, 1))
    _, uses = np.unique(found.rows, return_counts=True)
    assert len(found.rows) / len(uses) == pytest.approx(6.9, rel=0.05)
    # From 4 uses on, classes are wider than the scatter of the draws.
    middles, shares = (np.array(each) for each in zip(*USES))
    for middle, share in zip(middles[3:15], shares[3:15]):
        low, high = middle / 1.5, middle / 0.75
        assert uses[(uses > low) & (uses <= high)].sum() / len(found.rows) == pytest.approx(
            share, rel=0.1)
    assert (uses == 1).mean() == pytest.approx(0.473, rel=0.12)


def test_samples_of_a_request_have_the_same_bag_in_its_tables():
    lengths = load_model("ranking").requests
    model = _model("drawn", bag=(0, 5), requests=lengths, request_tables=(0,))
    samples = concatenate(generate(model, 2 * sum(lengths), 3))
    starts = np.flatnonzero([a != b for a, b in zip(_bags(samples, 0)[1:], _bags(samples, 0))]) + 1
    found = np.diff([0, *starts, len(samples)])
    # Two neighbouring requests may have equal bags, since bags may be empty.
    assert abs(len(found) - 2 * len(lengths)) <= 6
    assert set(found[:5]) <= {*lengths, *(a + b for a in lengths for b in lengths)}
    assert len(set(_bags(samples, 1)[:100])) > 50


def test_each_length_occurs_once_in_as_many_requests():
    lengths = (1, 2, 3, 40)
    for seed in range(3):
        requests = request_of(np.arange(10 * sum(lengths)), lengths, seed)
        counts = np.bincount(requests).reshape(10, 4)
        assert (np.sort(counts, axis=1) == lengths).all()
        assert len({tuple(each) for each in counts.tolist()}) > 1


@pytest.mark.parametrize("name, tables, keys, gigabytes", [
    ("dcnv2", 26, 214, 104.5), ("dcnv2_independent", 26, 214, 104.5),
    ("production", 856, 856 * 15.9, 94.7), ("two_towers", 8, 225, 23.8),
    ("ranking", 26, 289, 10.6)])
def test_workloads_that_ship(name, tables, keys, gigabytes):
    model = load_model(name)
    assert (model.name, model.tables) == (name, tables) and model.mini_batches
    assert model.keys == pytest.approx(keys, rel=0.01)
    assert sum(model.rows) * 4 * model.dimension / 1e9 == pytest.approx(gigabytes, rel=0.005)


@pytest.mark.parametrize("fields, message", [
    ({"rule": "zipf"}, "rule must be one of clicks, first_key, drawn, histogram, not 'zipf'"),
    ({"request_tables": (0,)}, "requests must be given"),
    ({"requests": (3,), "request_tables": (2,)}, r"request_tables\[0\] must be between 0 and 1"),
    ({"requests": (0,)}, r"requests\[0\] must be between 1 and"),
    ({"mini_batches": (0,)}, r"mini_batches\[0\] must be between 1 and")])
def test_bad_rules_are_rejected(fields, message):
    with pytest.raises(ValueError, match=message):
        _model(**({"rule": "clicks"} | fields))
