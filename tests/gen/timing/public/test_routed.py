"""Nets that Vivado routed, and the share of them that is slower than each case."""

import re

import pytest

from gen.timing.nets import Case
from tests.gen.timing.public.routed import RoutedNet, exceeded, read_routed_nets


def test_a_share_counts_the_nets_slower_than_the_case():
    nets = [RoutedNet("a", "n", 1, 150), RoutedNet("a", "n", 4, 151), RoutedNet("a", "n", 9, 400)]
    # The second case is 370, 390 and 410 ps at a fan-out of 1, 4 and 9.
    cases = (Case("flat", 150, 0), Case("root", 350, 20))
    assert exceeded(nets, cases) == {"flat": pytest.approx(2 / 3), "root": 0}


def test_the_cases_enclose_what_vivado_routed():
    nets = read_routed_nets()
    assert len(nets) == 84 and len({net.design for net in nets}) >= 20
    shares = exceeded(nets)
    # The optimistic case is a lower bound of a net outside a site, the pessimistic an upper one.
    assert shares["optimistic"] > 0.8
    assert 0.1 < shares["middle"] < 0.5
    assert shares["pessimistic"] < 0.05


@pytest.mark.parametrize(("row", "complaint"), [
    ("a,n,0,100,LUT2,FDRE", "line 2: fan_out must be a whole number above 0, not '0'"),
    ("a,n,3,slow,LUT2,FDRE", "line 2: ps must be a whole number above 0, not 'slow'"),
    ("a,n,3", "line 2: ps must be a whole number above 0, not None"),
])
def test_a_wrong_row_is_named(tmp_path, row, complaint):
    path = tmp_path / "nets.csv"
    path.write_text(f"design,net,fan_out,ps,from,to\n{row}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(f"nets.csv, {complaint}")):
        read_routed_nets(path)
