"""The cells of the suite cover each pair of values."""

from itertools import combinations

from sim.faults.cells import KINDS, MODES, cluster_cells, link_cells


def test_clusters_have_each_pair():
    cells = [(cell.kind, cell.mode, cell.nodes, cell.rate) for cell in cluster_cells()]
    values = [set(KINDS) | {"all"}, set(MODES), set(range(2, 9)), {1e-3, 1e-2, 1e-1}]
    for a, b in combinations(range(4), 2):
        assert {(cell[a], cell[b]) for cell in cells} == {
            (one, other) for one in values[a] for other in values[b]}


def test_links_have_each_kind_at_each_rate():
    cells = link_cells()
    for kind in (*KINDS, "all"):
        assert [float(cell.name) for cell in cells if cell.group == kind] == [
            1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
    assert {cell.group for cell in link_cells(short=True)} <= {cell.group for cell in cells}
    assert len(set(cells)) == len(cells)
