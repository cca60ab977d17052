"""A run with compiled hosts equals a run with hosts in Python, bit for bit."""

import numpy as np
import pytest

from host.placement.shard import ShardPlan
from host.timing.gpu import GpuProfile
from rtl.formats import TableDescriptor
from sim.host_cpp.node import CompiledNode
from sim.node.node import Node
from sim.run.run import Run
from tests.sim.interacting import job_of, model_of, write_model

OF_THE_MACHINE = ("wall_seconds", "cpu_seconds", "node_cycles_per_second")
CALLED = GpuProfile("called", 1.0, 64.0, 64, 2, call_us=6.0)
"""Launch calls longer than the time between lists: lists collect during a call."""

TIED = GpuProfile("tied", 1.0, 64.0, 64, 2, call_us=0.4)
"""Calls that end at whole cycles, like packets, and before their quantum does."""

OWNER = {"pool": "owner", "placement": "even"}

CASES = {
    "pooled vectors": ((), {"nodes": 4, "in_flight": 4}),
    "one NIC, one step at once": ((), {"nodes": 1, "in_flight": 1}),
    "two threads": ((), {"threads": 2, "in_flight": 2}),
    "calls": ((), {"gpu": CALLED, "in_flight": 4}),
    "short calls": ((), {"gpu": TIED, "in_flight": 8, "threads": 2}),
    "interaction": (("interaction=true",), {"in_flight": 2}),
    "interaction, calls": (("interaction=true",), {"gpu": CALLED, "in_flight": 4}),
    "queries that wait for credit": ((), {"bags": "to 40", "in_flight": 4}),
    "refusals": ((), {"bags": "to 40", "in_flight": 4}),
    "interaction, refusals": (("interaction=true",), {"bags": "to 40", "in_flight": 4}),
    "unique": (("deliver=unique",), {"gpu": CALLED, "in_flight": 4}),
    "unique, completions, refusals": (
        ("deliver=unique", "completions=true", "pooling=mean"), {"bags": "to 40", "in_flight": 8}),
    "completions without flushes": (
        ("completions=true", "completion_flush=false"), {"nodes": 4, "in_flight": 2}),
    "interaction, completions": (("interaction=true", "completions=true"), {"in_flight": 4}),
    "interaction, late": (
        ("interaction=true", "completions=true", "step_timeout=30000"), {"in_flight": 4}),
    "unique, late": (
        ("deliver=unique", "completions=true", "step_timeout=30000"), {"in_flight": 4}),
    "rings": (("gpu_rings=true",), {"nodes": 4, "in_flight": 4}),
    "rings, calls": (("gpu_rings=true",), {"gpu": CALLED, "in_flight": 4, "threads": 2}),
    "rings, interaction, completions": (
        ("gpu_rings=true", "interaction=true", "completions=true"), {"in_flight": 4}),
    "row reads": (("row_reads=true",), {"nodes": 4, "in_flight": 4}),
    "row reads, interaction, completions": (
        ("row_reads=true", "interaction=true", "completions=true"), {"in_flight": 4}),
    "rings, unique, completions, refusals": (
        ("gpu_rings=true", "deliver=unique", "completions=true"),
        {"bags": "to 40", "in_flight": 8}),
    "owner": ((), OWNER | {"nodes": 4, "gpu": CALLED, "in_flight": 4}),
    "owner, means, refusals": (("pooling=mean",), OWNER | {"bags": "to 40", "in_flight": 4}),
    "owner, interaction, completions": (
        ("interaction=true", "completions=true"), OWNER | {"in_flight": 4}),
    "owner, unique, completions": (
        ("deliver=unique", "completions=true", "pooling=mean"), OWNER | {"in_flight": 4}),
    "owner of some tables, unique, late": (
        ("deliver=unique", "completions=true", "step_timeout=30000"),
        OWNER | {"pool": "some", "in_flight": 4}),
}
LATER = ("one NIC, one step at once", "two threads", "interaction", "completions without flushes",
         "interaction, completions", "rings, calls", "rings, interaction, completions",
         "owner, interaction, completions", "owner of some tables, unique, late")
"""Cases that combine features of other cases."""


def _result(job: Run, kind: type) -> dict:
    assert all(type(node) is kind for node in job.cluster.nodes)
    result = job.execute()
    assert result["complete"] and not result["results"]["different"]
    return {name: value for name, value in result.items() if name not in OF_THE_MACHINE} | {
        "errors of nodes": [node.errors for node in job.cluster.nodes],
        "progress of nodes": [node.progress for node in job.cluster.nodes]}


@pytest.mark.thorough
@pytest.mark.parametrize("case", [
    pytest.param(case, marks=pytest.mark.slow if case in LATER else ()) for case in CASES])
def test_compiled_hosts_equal_those_in_python(tmp_path, request, monkeypatch, case):
    refusals, full = "refusals" in case, ShardPlan.descriptors

    def fewer_rows(plan: ShardPlan) -> np.ndarray:
        words = full(plan)
        words[1, TableDescriptor["rows_low"].offset // 32] = 2990
        return words

    if refusals:
        monkeypatch.setattr(ShardPlan, "descriptors", fewer_rows)
    settings, options = CASES[case]
    options = dict(options)
    if options.get("pool") == "some":
        (tmp_path / "pool.toml").write_text("owner = [1, 3]\n")
        options["pool"] = tmp_path / "pool.toml"
    path = write_model(tmp_path / "model.toml", model_of(16, options.pop("bags", "to 9")))
    compiled = _result(job_of(path, *settings, **options), CompiledNode)
    request.getfixturevalue("python_hosts")
    python = _result(job_of(path, *settings, **options), Node)
    assert compiled == python
    assert any(python["errors of nodes"]) == refusals and (
        (refusals or "late" in case) <= (0 < python["results"]["equal"] < 96))
