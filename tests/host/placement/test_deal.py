"""Properties of the rules that deal whole tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.placement.deal import Rule, described

ROWS = st.dictionaries(st.integers(0, 40), st.integers(1, 1000), min_size=1, max_size=30)


def _held(owners, values, nodes):
    return np.bincount([owners[table] for table in values], [*values.values()], nodes)


@given(ROWS, st.integers(1, 9))
def test_even_differs_by_one_table_and_gives_each_to_the_fewest_rows(rows, nodes):
    owners = Rule("even").owners(rows, nodes)
    assert owners.keys() == rows.keys()
    counts = np.bincount([*owners.values()], minlength=nodes)
    assert counts.max() - counts.min() <= 1
    # Replayed: no node with fewer rows could have taken a table and kept the counts even.
    held, so_far = [0] * nodes, [0] * nodes
    least, extra = divmod(len(rows), nodes)
    for table in sorted(rows, key=lambda t: (-rows[t], t)):
        owner = owners[table]
        for node in range(nodes):
            if held[node] < held[owner]:
                given_more = sum(count > least for count in so_far)
                assert so_far[node] > least or (so_far[node] == least and given_more == extra)
        held[owner] += rows[table]
        so_far[owner] += 1


@given(ROWS, st.integers(1, 9))
def test_rows_are_within_the_largest_table_of_each_other(rows, nodes):
    held = _held(Rule("rows").owners(rows, nodes), rows, nodes)
    assert held.max() - held.min() <= max(rows.values())


@given(ROWS, st.lists(st.integers(0, 500), min_size=41, max_size=41), st.integers(1, 9))
def test_lookups_are_within_the_most_looked_up_of_each_other(rows, lookups, nodes):
    rule = Rule("lookups", tuple(lookups))
    mine = {table: lookups[table] for table in rows}
    held = _held(rule.owners(rows, nodes), mine, nodes)
    assert held.max() - held.min() <= max(mine.values())


@given(ROWS, st.integers(1, 9))
def test_as_many_lookups_everywhere_are_even_in_tables(rows, nodes):
    owners = Rule("lookups", (7,) * 41).owners(rows, nodes)
    counts = np.bincount([*owners.values()], minlength=nodes)
    assert counts.max() - counts.min() <= 1


def test_lookups_are_kept_for_their_own_rule_alone():
    assert Rule("even", (1, 2)) == Rule("even")
    assert Rule("lookups", (1, 2)) != Rule("lookups", (2, 1))


def test_nodes_that_are_given_are_taken():
    rule = Rule("2,0,2")
    assert rule.owners({0: 5, 1: 7, 2: 1}, 4) == {0: 2, 1: 0, 2: 2}
    assert rule.owners({2: 1}, 4) == {2: 2}
    assert described("2,0,2") == "whole tables, each at a listed node"
    with pytest.raises(ValueError, match=r"^placement must have a node for table 3, not 3 nodes$"):
        rule.owners({3: 1}, 4)
