"""A changed worst path of a block is noticed: every worst path equals its recorded delay."""

import pytest

from tests.gen.timing.baseline import CASES, RENEW, measured, recorded


@pytest.mark.thorough
@pytest.mark.parametrize("name", [
    "parts",
    # Yosys takes some minutes for each.
    pytest.param("repeats", marks=pytest.mark.slow),
    pytest.param("tiny", marks=pytest.mark.slow)])
def test_worst_paths_are_as_recorded(name):
    now, then = measured(name), recorded(name)
    before, after = then["blocks"], now["blocks"]
    changes = [f"{block} is new" for block in after.keys() - before.keys()]
    changes += [f"{block} is gone" for block in before.keys() - after.keys()]
    changes += [
        f"{block}: {before[block][place]:,} ps with {case} nets became {after[block][place]:,}"
        for block in before.keys() & after.keys() for place, case in enumerate(CASES)
        if before[block][place] != after[block][place]]
    other = "" if now["yosys"] == then["yosys"] else (
        f" (recorded with {then['yosys']}, this is {now['yosys']})")
    assert not changes, "\n".join([
        f"the timing of {name} changed{other}:", *sorted(changes),
        f"if that is meant, renew the figures and say why in the commit: {RENEW} {name}"])


def test_blocks_that_find_repeats_reach_300_mhz():
    """With middle nets."""
    blocks = recorded("repeats")["blocks"]
    assert {"repeats__bag_repeats", "repeats__repeat_store"} <= blocks.keys()
    assert max(ps[CASES.index("middle")] for ps in blocks.values()) <= 1e6 / 300
