"""The whole NIC under stalls, small tables, dimensions, random power-up, and on every engine."""

import json
import subprocess
import sys
from functools import partial

import pytest

from host.model import MODELS
from host.placement.shard import Placement, ShardPlan
from host.wire.rows import row_answers
from rtl.config import preset
from rtl.formats import DescriptorKind
from sim.cluster.exchange import Exchange
from sim.job.fit import check_fit
from sim.job.options import RunOptions
from sim.job.settings import Runtime
from sim.job.workload import Workload
from sim.nic.build import RtlNic
from sim.nic.registers import RegisterFile
from sim.run.report import failures
from sim.run.run import Run, run
from tests.sim import inputs


def _good(job: Run) -> dict:
    result = job.execute()
    assert failures(result) == []
    return result


def _model(tmp_path, dimension: int) -> str:
    path = tmp_path / f"model{dimension}.toml"
    path.write_text(
        f'name = "d{dimension}"\nrows = [50, 3000, 1048576, 7]\ndimension = {dimension}\n'
        f'dense = 1\nbottom = [8, {dimension}]\ntop = [8, 1]\n')
    return str(path)


@pytest.mark.thorough
@pytest.mark.parametrize("dimension", [16, 32, 48, 64])
@pytest.mark.parametrize(("nodes", "placement"), [(1, "even"), (4, "row")])
def test_dimensions_and_small_tables(tmp_path, dimension, nodes, placement):
    """``tiny`` has 16 misses in flight, 64 rows of cache and scatter nodes: all of them fill."""
    trace = inputs.multi_hot_trace(tmp_path / "bags.txt", 60, longest=12)
    result = _good(Run(RunOptions.of(
        config="tiny", data=str(trace), format="trace", model=_model(tmp_path, dimension),
        nodes=nodes, placement=placement, mini_batch=16, threads=1)))
    assert result["dedupe"]["retired_early"] > 0
    assert result["local_cache"]["evictions"] > 0
    counters = result["counters"][0]
    assert counters["dedupe.stall_in_flight"] + counters["local_cache.stall_in_flight"] > 0


@pytest.mark.thorough
@pytest.mark.parametrize("probability", [0.3, 0.9])
def test_stalled_edges_change_nothing(probability):
    options = RunOptions.of(config="tiny", samples=24, mini_batch=8, nodes=2, threads=1)
    calm = run(options)
    job = Run(options)
    for number, node in enumerate(job.cluster.nodes):
        for edge in ("net_tx", "host_tx", "host_rx", "net_rx"):
            node.engine.set_stall(edge, 7 + number, probability)
    result = _good(job)
    assert result["predictions_sha256"] == calm["predictions_sha256"]
    assert result["cycles"] != calm["cycles"]


@pytest.mark.thorough
def test_contents_of_memories_at_power_up_do_not_matter(monkeypatch):
    options = RunOptions.of(config="tiny", samples=24, mini_batch=8, nodes=2, threads=1)
    original = RtlNic.instance
    results = []
    for seed in (None, 1, 99):
        monkeypatch.setattr(RtlNic, "instance", lambda self, *, skip=True, seed=seed: original(
            self, skip=skip, random_init=seed))
        result = _good(Run(options))
        for name in ("wall_seconds", "cpu_seconds", "node_cycles_per_second"):
            del result[name]
        results.append(result)
    assert results[0] == results[1] == results[2]


def _some(registers: RegisterFile, names: list[str], first: int) -> dict[str, int]:
    return dict.fromkeys(names, 0) | registers.read(*names[first::2])


@pytest.mark.slow  # minutes of compilation and of simulation
@pytest.mark.parametrize("other", ["pysim", "cxxrtl"])
def test_engines_agree_on_the_nic(tmp_path, other):
    """Every counter, cycle and prediction is the same on every engine.

    On Amaranth's simulator, reading a counter takes as long as a tenth of a mini-batch: only every
    other counter of each NIC is read.
    """
    path = tmp_path / "trace.txt"
    path.write_text("0:1 1:2 1:2 2:99 3:0\n0:1 1:2 3:6\n")
    results = []
    for engine in ("verilator", other):
        job = Run(RunOptions.of(
            config="tiny", data=str(path), format="trace", model=_model(tmp_path, 16), nodes=2,
            placement="row", engine=engine, mini_batch=2, threads=1))
        names = [name for name in job.registers[0].names if "." in name]
        for number, registers in enumerate(job.registers):
            registers.counters = partial(_some, registers, names, number)
        result = _good(job)
        for name in ("wall_seconds", "cpu_seconds", "node_cycles_per_second", "engine", "options"):
            del result[name]
        results.append(result)
    assert results[0] == results[1]


@pytest.mark.thorough
def test_json_has_what_it_promises(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "sim", "run", "--config", "tiny", "--samples", "16", "--nodes",
         "2", "--mini-batch", "8", "--json", "-", "--picture", str(tmp_path / "run.png")],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    for name in ("schema", "config", "samples", "lookups", "nodes", "engine", "fidelity", "cycles",
                 "simulated_seconds", "wall_seconds", "node_cycles_per_second", "bit_identical",
                 "local_cache", "remote_cache", "dedupe", "network", "latency_us", "phases_us",
                 "predictions_sha256"):
        assert name in result, name
    assert set(result["dedupe"]) >= {"requests", "unique", "retired_early"}
    assert set(result["network"]) >= {"packets", "bytes", "saved_lookups"}
    assert set(result["latency_us"]) == {"p50", "p99", "max"}
    assert result["bit_identical"] is True and result["lookups"] == 416
    assert 0 < result["latency_us"]["p50"] <= result["latency_us"]["max"]
    assert "bit-identical" in done.stderr
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
def test_replicated_tables_stay_at_home(monkeypatch):
    """With small tables at every node, the predictions are the same with fewer packets."""
    options = RunOptions.of(config="tiny", samples=48, mini_batch=16, nodes=3, threads=1)
    dealt = run(options)
    plan = ShardPlan.deal(MODELS["kaggle"], 3)
    replicated = ShardPlan(3, tuple(
        Placement(DescriptorKind.REPLICATED, table.rows) if table.rows < 1000 else table
        for table in plan.tables))
    monkeypatch.setattr(ShardPlan, "deal", classmethod(lambda *_, **__: replicated))
    result = _good(Run(options))
    assert result["predictions_sha256"] == dealt["predictions_sha256"]
    assert result["network"]["bytes"] < dealt["network"]["bytes"]


@pytest.mark.thorough
def test_a_wrong_row_is_found(backend, capsys):
    """A GPU answers one wrong bit: the run reports it and ends with exit status 1."""
    from sim.cli.main import main

    def wrong_rows(model, seed, node, payload_beats):
        answer = row_answers(model, seed, node, payload_beats)

        def with_a_wrong_bit(records, step):
            packets = answer(records, step)
            packets[-1][-1, 3] ^= 1
            return packets

        return with_a_wrong_bit

    backend(rows=wrong_rows)
    with pytest.raises(SystemExit) as end:
        main(["run", "--config", "tiny", "--samples", "64", "--nodes", "2", "--mini-batch", "32"])
    assert end.value.code == 1
    assert "differ from the numpy model" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_lost_frame_is_found(backend, monkeypatch, capsys):
    """A network loses a frame: samples stay unanswered, and the run ends and reports it."""
    from sim.cli.main import main
    original, seen = Exchange._taken, []

    def lossy(self, number):
        frames = original(self, number)
        before = len(seen)
        seen.extend(frames.starts)
        if before <= 4 < len(seen):
            for column in frames[1:]:
                del column[4 - before]
        return frames

    monkeypatch.setattr(Exchange, "_taken", lossy)
    backend(exchange=Exchange)
    with pytest.raises(SystemExit) as end:
        main(["run", "--config", "tiny", "--samples", "32", "--nodes", "2", "--mini-batch", "16"])
    assert end.value.code == 1
    assert "not answered" in capsys.readouterr().err


@pytest.mark.thorough
def test_presets_take_the_models_they_are_named_after():
    for name in ("kaggle", "avazu", "terabyte"):
        check_fit(preset(name), MODELS[name], Runtime(), Workload(config=name))
