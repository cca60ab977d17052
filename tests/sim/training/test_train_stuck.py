"""The message of a stuck training names every silent node, the nodes that it waits for, and the
remedy."""

import pytest

from sim.training.report import failures
from sim.training.train import Training
from tests.sim.training.compiled_nics import options, write


@pytest.mark.thorough
@pytest.mark.parametrize(("faults", "words", "peer"), [
    ("silent-host=20us:@1,silent-host=20us:@2", ("the host of node 1 ", "the host of node 2 "),
     None),
    ("drop-steps=#3@0>1", ("node 1 waits for the end of a step: the sums of node 0 are missing",
                           "; NICs without a reliable link cannot send a frame again: add --set "
                           "link=true"), 0)])
def test_culprits_are_named(tmp_path, faults, words, peer):
    result = Training(options(write(tmp_path), nodes=3, samples=24, faults=faults,
                              patience=20_000)).execute()
    line, = failures(result)
    assert line.startswith(f"training is stuck in step {result['steps']}: ")
    for text in words:
        assert line.count(text) == 1
    assert result["where_stuck"]["causes"][0]["peer"] == peer
