"""NICs in a storm of hostile messages of their hosts: each is rejected with a status, without other
effects."""

import contextlib
import os
import random
from collections import Counter
from dataclasses import replace

import pytest
from rich.console import Console
from rich.table import Table

from rtl.formats import Status
from sim.job.options import RunOptions
from sim.node.errors import ProtocolError
from sim.node.host_port import HostPort
from sim.run.backend import choose
from sim.run.report import failures as run_failures
from sim.run.run import Run
from sim.training.options import TrainOptions
from sim.training.report import failures as training_failures
from sim.training.train import Training
from tests.fuzz.clusters import CLUSTERS, Case, drained
from tests.fuzz.messages import Messages, StormyPort
from tests.sim.training.compiled_nics import write

VERDICTS = ("errors_mac", "bad_length", "bad_opcode")
STATUSES = {Status.OPCODE, Status.LENGTH, Status.TRUNCATED}
NODES = 2

@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return write(tmp_path_factory.mktemp("model"))


def _job(case: Case, path: str, samples: int) -> Run | Training:
    given = {"config": "tiny", "model": path, "nodes": NODES, "samples": samples,
             "mini_batch": 8, "placement": "row", "threads": 1, "settings": case.settings,
             "patience": 100_000}
    if case.training:
        return Training(TrainOptions.of(**given))
    options = RunOptions.of(**given | {"in_flight": 2})
    return Run(options, replace(choose(options), compiled_hosts=False))


def _nodes(job: Run | Training) -> list:
    if isinstance(job, Training):
        assert job.nics is not None
        return list(job.nics.simulation.cluster.nodes)
    return list(job.cluster.nodes)


def recorded(case: Case, path: str) -> list[bytes]:
    """Return the messages of hosts in an undisturbed run."""
    told: list[bytes] = []
    give = HostPort.give

    def noted(self, packets, starts, now) -> None:
        told.extend(packet.tobytes() for packet in packets)
        give(self, packets, starts, now)

    job = _job(case, path, 32)
    for node in _nodes(job):
        node._port.give = noted.__get__(node._port)
    job.execute()
    return told


def storm(kind: str, case: Case, path: str, seed: int, limit: int) -> tuple[StormyPort, list[str]]:
    """Send ``limit`` messages of a kind to node 0; return its port, and the errors."""
    if kind == "anything":
        return broken(case, path, seed, limit)
    return harmless(kind, case, path, seed, limit)


def harmless(kind: str, case: Case, path: str, seed: int, limit: int
             ) -> tuple[StormyPort, list[str]]:
    """Send messages that may not change an answer of the run.

    Malformed messages must be rejected and counted, with a status if fewer than four wait. Messages
    about samples, landings or keys that the run does not have are taken, and their samples answered
    or rejected.
    """
    chance = random.Random(seed)
    samples = max(32, limit // (40 if kind == "malformed" else 10))
    job = _job(case, path, samples)
    node = _nodes(job)[0]
    messages = Messages(job.config, 16, recorded(case, path), chance)
    node._port = port = StormyPort(node, node._port, messages, kind, limit)
    result = job.execute()
    wrong = list(port.wrong)
    if isinstance(job, Training):
        # The NIC reports each rejected message without a sample.
        wrong += [line for line in training_failures(result) if "were refused" not in line]
    else:
        wrong += run_failures(result)
    counters = result["counters"][0]
    refused = sum(counters[f"host_receiver.{name}"] for name in VERDICTS)
    sent, taken = port.sent.total(), counters["host_receiver.packets"]
    malformed = sent if kind == "malformed" else 0
    if refused != malformed:
        wrong.append(f"{refused:,} of {malformed:,} messages refused")
    if not 0 < port.refused.total() <= (8 * sent if kind == "foreign" else sent):
        wrong.append(f"{port.refused.total():,} refusals of {sent:,} messages")
    if taken != port.honest + sent - malformed:
        wrong.append(f"{taken:,} messages taken, of {port.honest + sent - malformed:,}")
    if counters["host_receiver.overruns"]:
        wrong.append(f"no room for {counters['host_receiver.overruns']:,} messages")
    if kind == "malformed" and not set(port.refused) <= STATUSES:
        wrong.append(f"refused with {dict(port.refused)}")
    return port, wrong


def broken(case: Case, path: str, seed: int, limit: int) -> tuple[StormyPort, list[str]]:
    """Let a host also send any message: its run may fail, but its NIC takes and counts all
    messages."""
    job = _job(case, path, max(32, limit // 40))
    node = _nodes(job)[0]
    setup = job.nics.simulation if isinstance(job, Training) and job.nics else job.simulation
    messages = Messages(job.config, 16, recorded(case, path), random.Random(seed))
    node._port = port = StormyPort(node, node._port, messages, "anything", limit)
    with contextlib.suppress(ProtocolError, ValueError, IndexError):
        job.execute()
    while port.left:
        port.push()
        node.engine.run(node.engine.cycle + node.pcie.latency)
    counters, came = drained(setup, "host_rx")[0], port.honest + port.sent.total()
    names = (*VERDICTS, "packets", "overruns")
    counted = sum(counters[f"host_receiver.{name}"] for name in names)
    return port, [] if counted == came else [f"{counted:,} of {came:,} messages counted"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", CLUSTERS)
def test_broken(name, path):
    port, wrong = storm("anything", CLUSTERS[name], path, 0, 2_000)
    assert not wrong and port.sent.total() == 2_000


@pytest.mark.thorough
@pytest.mark.parametrize("name", CLUSTERS)
def test_malformed(name, path):
    port, wrong = storm("malformed", CLUSTERS[name], path, 0, 2_000)
    assert not wrong and port.sent.total() == 2_000
    assert set(port.refused) == STATUSES


def test_foreign(path):
    port, wrong = storm("foreign", CLUSTERS["pooled"], path, 0, 1_000)
    assert not wrong and port.answered > 10
    assert set(port.refused) >= {Status.TABLE, Status.ROW, Status.SAMPLE_SIZE, Status.TRUNCATED,
                                 Status.NO_SAMPLE}


@pytest.mark.slow
def test_many(path):
    """Send a million messages: malformed messages to each cluster in turn, and foreign and broken
    messages."""
    wanted = int(os.environ.get("EMBERNIC_MESSAGES", "1_000_000"))
    first = int(os.environ.get("EMBERNIC_STORM_FROM", "1000"))
    kinds = [(kind, name) for name in CLUSTERS for kind in ("malformed", "anything")]
    kinds.append(("foreign", "pooled"))
    rows: dict[tuple[str, str], Counter[str]] = {kind: Counter() for kind in kinds}
    wrong, each = [], 10_000
    for number in range(-(-wanted // each)):
        kind, name = kinds[number % len(kinds)]
        port, found = storm(kind, CLUSTERS[name], path, first + number // len(kinds), each)
        rows[kind, name].update(
            {"messages": port.sent.total(), "refused with a status": port.refused.total(),
             "samples answered": port.answered, "defects": bool(found)})
        wrong += [f"{kind}, {name}, seed {first + number // len(kinds)}: {what}" for what in found]
    Console(width=100).print(_table(rows, first))
    assert not wrong, "\n".join(what[:400] for what in wrong[:20])


def _table(rows: dict[tuple[str, str], Counter[str]], first: int) -> Table:
    table = Table(title=f"hostile messages, seeds from {first}")
    counts = ("messages", "refused with a status", "samples answered", "defects")
    for column in ("messages that are", "cluster", *counts):
        table.add_column(column, justify="right" if column in counts else "left")
    for row, counted in rows.items():
        table.add_row(*row, *(f"{counted[name]:,}" for name in counts))
    return table
