"""One dead peer: the other nodes answer every sample."""

import random

import pytest

from rtl.formats import Status
from sim.job.options import RunOptions
from sim.run.run import Run

DEAD = 2
NEEDY = (6, 7, 8)
"""Samples that name a row of the dead node."""


def test_survivors_answer_every_sample(tmp_path):
    choose = random.Random(3)
    path = tmp_path / "samples.txt"
    path.write_text("".join(
        " ".join(f"{table}:{choose.randrange(50)}" for table in range(2 + (k in NEEDY))) + "\n"
        for k in range(120)))
    job = Run(RunOptions.of(
        config="tiny", nodes=3, data=str(path), format="trace", mini_batch=6, in_flight=64,
        settings=("link=true", "link_tries=3", "link_timeout_first=500", "link_timeout_most=2000"),
        placement="0,1,2", faults=f"down=0us:1s@{DEAD}", threads=1, patience=20_000))
    result = job.execute()
    for node in job.cluster.nodes[:DEAD]:
        assert result["counters"][node.number]["query_checker.samples"] == 40
        assert node.unanswered == 0
    print(result["results"], result["stuck"], result["cycles"], [[e for e in n.errors][:9] for n in job.cluster.nodes])
