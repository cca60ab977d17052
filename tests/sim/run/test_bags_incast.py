"""Runs in which all other nodes send their bags to one owner, through finite queues of the switch.

Every table is at the last node. Each bag has 100 keys, 51 words with its head.
"""

import pytest

from host.model import Model
from rtl.config import preset
from rtl.formats import BEAT_BYTES
from sim.job.options import RunOptions
from sim.job.workload import Workload
from sim.offline.plan import plan
from sim.run.report import failures
from sim.run.run import run
from tests.sim.interacting import write_model
from tests.sim.run.results import faultless

TABLES, KEYS = 4, 100
FRAME_BYTES = BEAT_BYTES + 24
"""Bytes of a packet on the wire, besides its payload beats."""


def incast(tmp_path, nodes: int, queue: int, *settings: str, **options) -> dict:
    """Return a run of ``nodes`` whose switch has output queues of ``queue`` bytes."""
    network, model = tmp_path / "queues.toml", write_model(tmp_path / "incast.toml", Model(
        tuple(range(5000, 5000 + TABLES)), 16, 3, (4, 16), (4, 1), "incast",
        ((KEYS, KEYS),) * TABLES))
    network.write_text(f'name = "queues"\none_way = "1.38 us"\nbandwidth = "100 Gb/s"\n'
                       f'overhead_bytes = 24\nswitched = true\nqueue = "{queue} B"\n')
    return run(RunOptions.of(**{
        "config": "tiny", "nodes": nodes, "samples": 24 * nodes, "mini_batch": 6 * nodes,
        "in_flight": 4, "model": model, "pool": "owner", "threads": 1,
        "placement": ",".join([str(nodes - 1)] * TABLES), "network": str(network),
        "settings": settings} | options))


@pytest.mark.thorough
@pytest.mark.parametrize("link", [(), ("link=true", "link_timeout_first=60000",
                                       "link_timeout_least=60000")], ids=["", "link"])
def test_credits_bound_the_queue_of_an_owner(tmp_path, link):
    """A queue that holds the windows of all senders, in the shortest packets, never drops a frame.
    """
    config = preset("tiny").with_fields(nodes=16, owner_bags=64)
    senders = 8
    most = senders * config.bag_window * (BEAT_BYTES + FRAME_BYTES)
    result = incast(tmp_path, senders + 1, most, "nodes=16", *link, fidelity="fast")
    assert failures(result) == [] and result["complete"]
    assert result["network"]["queue_drops"] == 0
    bags = 24 * senders * TABLES
    owner = result["counters"][senders]
    assert result["bags"]["foreign"] == owner["bag_check.bags"] == bags
    assert owner["bag_check.keys"] == KEYS * bags
    # Without the credits, the bags in flight would not fit; with a quarter, they do not either.
    assert bags * 51 * 8 > most
    if not link:  # the model of a link does not send again
        small = incast(tmp_path, senders + 1, most // 4, "nodes=16", fidelity="fast")
        assert small["network"]["queue_drops"] > 0 and not small["complete"]


@pytest.mark.parametrize(("beats", "bottleneck", "least", "most"), [
    (4096, "network in", 0.8, 0.895), (1024, "bag credit", 0.25, 0.3)])
def test_the_link_is_the_bottleneck_of_eight_senders(tmp_path, beats, bottleneck, least, most):
    """The goodput is the share of an owner's link that is heads and rows of bags. Full packets of
    three bags reach 0.895. The default credit is longer than the trip of a bag through a GPU."""
    senders, samples = 8, 512
    options = {"config": "kaggle", "samples": samples * (senders + 1), "mini_batch": 256 * (
        senders + 1)}
    settings = ("nodes=16", *[f"owner_bag_beats={beats}"] * (beats != 4096))
    result = incast(tmp_path, senders + 1, 512 * 1024, *settings, fidelity="fast", **options)
    assert result["complete"] and result["network"]["queue_drops"] == 0
    assert result["config"]["owner_bag_beats"] == beats
    bags = samples * senders * TABLES
    link_bytes = result["cycles"] * 50  # 100 Gb/s at 250 MHz
    assert least < bags * 51 * 8 / link_bytes < most
    planned = plan(Workload.of(**options | {
        "model": str(tmp_path / "incast.toml"), "network": str(tmp_path / "queues.toml"),
        "nodes": senders + 1, "pool": "owner", "in_flight": 4, "settings": settings,
        "placement": ",".join([str(senders)] * TABLES), "cluster": "paper"}))
    assert planned["binds"] == bottleneck


@pytest.mark.thorough
@pytest.mark.parametrize("queue", [16_384, 4_096])
def test_seven_senders_lose_frames_at_a_small_queue(tmp_path, queue):
    """The link sends them again: every bag is answered once, with its bits."""
    result = faultless(incast(tmp_path, 8, queue, "link=true"))
    assert result["network"]["queue_drops"] > 0
    bags = 24 * 7 * TABLES
    sums = {name: sum(node[name] for node in result["counters"]) for name in (
        "link_sender.repeated", "bag_check.bags", "bag_landing.vectors",
        "bag_landing.bad_vectors", "bag_receiver.over_credit")}
    assert sums.pop("link_sender.repeated") > 0
    assert list(sums.values()) == [bags, bags, 0, 0]
