"""The bench: its rows, resuming after an interruption, and the latency of every block."""

import json

import numpy as np
import pytest
from rich.console import Console

from host.placement.sets import set_of
from host.placement.shard import key_hash
from host.wire.bags import parse_bags
from rtl.config import preset
from rtl.formats import RawBeat
from rtl.stream import StreamFIFO
from sim.bench import bench as module
from sim.bench import resources as bench_resources
from sim.bench.bags import bag_samples, owner_rate, requester_rate
from sim.bench.bench import NOT_BUILT, bench
from sim.bench.decoding import decoding_rate
from sim.bench.dots import dot_jobs, dot_limits, dot_row
from sim.bench.gradients import gradient_jobs, gradient_rate, on_one_key
from sim.bench.latency import LATENCY_CASES
from sim.bench.nic import limits, throughput_row
from sim.bench.packets import packet_rate
from sim.bench.pooling import pooling_rate
from sim.bench.probe import Probe, stated
from sim.bench.rates import one_set, trace
from sim.bench.rows import SECTIONS, Job, Row
from sim.bench.tables import latency_table, note_table, row_table
from sim.cli.main import main
from sim.job.options import RunOptions
from sim.run.run import run

TINY = preset("tiny")


class Jobs:
    """Three jobs, the second with two rows; counts measurements, and stops at a given
    measurement."""

    def __init__(self, monkeypatch):
        self.measured: list[str] = []
        self.stop_at = ""
        monkeypatch.setattr(module, "_jobs", lambda only: [
            self._job("lookups", "one", 1), self._job("packets", "two", 2),
            self._job("packets", "three", 1)])

    def _job(self, section: str, name: str, count: int) -> Job:
        def measure(progress):
            if name == self.stop_at:
                raise KeyboardInterrupt
            self.measured.append(name)
            progress("half")
            return [Row(f"{name} {k}", 0.5 + k, "items/cycle", 0.95) for k in range(count)]
        return Job(section, name, measure)


@pytest.fixture
def jobs(monkeypatch):
    return Jobs(monkeypatch)


def test_rows_are_finished_one_by_one_and_continued(jobs, tmp_path):
    path = tmp_path / "bench.json"
    jobs.stop_at = "three"
    with pytest.raises(KeyboardInterrupt):
        bench(json_path=str(path))
    kept = json.loads(path.read_text())
    assert [row["name"] for row in kept["rows"]] == ["one 0", "two 0", "two 1"]
    assert kept["complete"] is False
    jobs.stop_at = ""
    shown = []
    result = bench(json_path=str(path), finished=lambda row: shown.append(row["name"]))
    assert jobs.measured == ["one", "two", "three"]
    assert shown == [row["name"] for row in result["rows"]]
    assert shown == ["one 0", "two 0", "two 1", "three 0"]
    assert result["complete"] is True and json.loads(path.read_text()) == result
    assert [row["holds"] for row in result["rows"]] == [False, False, True, False]


@pytest.mark.parametrize(("kept", "said"), [
    ('{"complete": true}', None), ('{"complete": false, "rows": [3]}', None), ("[", None),
    ('{"complete": false, "rows": []}', "unfinished results of another request")])
def test_only_unfinished_rows_of_another_request_are_refused(jobs, tmp_path, kept, said):
    path = tmp_path / "bench.json"
    path.write_text(kept)
    if said is None:
        assert len(bench(json_path=str(path))["rows"]) == 4
    else:
        with pytest.raises(ValueError, match=said):
            bench(json_path=str(path))
        assert path.read_text() == kept


def test_standard_output_is_json_alone(jobs, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "--json", "-"])
    assert stopped.value.code == 0
    out, err = capsys.readouterr()
    assert [row["value"] for row in json.loads(out)["rows"]] == [0.5, 0.5, 1.5, 0.5]
    assert "0 of 3" in err and "1 of 3: two" in err and "not built: " in err


def test_unknown_section_is_one_line(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "--only", "lookups,hbm"])
    assert stopped.value.code == 2
    line = capsys.readouterr().err.splitlines()
    assert line == [f"sim: only must be of {', '.join(SECTIONS)}, not 'hbm'"]


def test_every_section_has_jobs_and_names_are_unique():
    every = module._jobs([])
    assert list(dict.fromkeys(job.section for job in every)) == list(SECTIONS)
    assert len({job.name for job in every}) == len(every)
    assert [job.section for job in module._jobs(["nic"])] == ["nic"] * 3
    assert all(NOT_BUILT.values())


@pytest.mark.parametrize("value,target,sense,holds", [
    (0.95, 0.95, ">=", True), (0.949, 0.95, ">=", False), (60.0, 60.0, "<=", True),
    (60.1, 60.0, "<=", False), (7.0, None, ">=", None)])
def test_a_row_holds_on_its_side_of_the_target(value, target, sense, holds):
    assert Row("x", value, "u", target, sense).holds is holds


def test_tables_name_what_misses():
    console = Console(width=100, record=True)
    rows = [Row("good", 1.0, "a", 0.95, note="how").as_dict() | {"section": "lookups"},
            Row("bad", 3, "b", 2, "<=").as_dict() | {"section": "nic"},
            Row("open", 0.5, "c", bound=0.6).as_dict() | {"section": "nic"},
            Row("bound", 9, "d", 11, "<=", bound=8).as_dict() | {"section": "nic"}]
    console.print(row_table(rows), note_table(rows))
    console.print(latency_table([{"block": "B", "from": "x", "to": "y", "value": 3, "stated": 4}]))
    text = console.export_text()
    lines = {line.split()[0]: line for line in text.splitlines() if line.split()}
    assert "yes" in lines["good"] or "how" in lines["good"]
    assert "NO" in lines["bad"] and "<= 2" in lines["bad"]
    assert "<= 11 of 8" in lines["bound"]
    assert "of 0.600" in lines["open"] and "3 (stated: 4)" in lines["B"]


@pytest.mark.thorough
@pytest.mark.parametrize("block", LATENCY_CASES)
def test_latency_is_what_the_block_states(block):
    found = LATENCY_CASES[block](TINY)
    assert found
    assert [(latency.start, latency.end, latency.cycles) for latency in found] == [
        (latency.start, latency.end, latency.stated) for latency in found]


@pytest.mark.slow
@pytest.mark.parametrize("block", LATENCY_CASES)
def test_latency_does_not_depend_on_sizes(block):
    assert LATENCY_CASES[block](preset("kaggle")) == LATENCY_CASES[block](TINY)


def test_a_probe_measures_one_item_into_an_idle_block():
    probe = Probe(StreamFIFO(RawBeat, 4))
    _, cycles = probe.drive("o", probe.push("i"), probe.push("i", after=3))
    assert cycles.tolist() == [-1, 2]
    with pytest.raises(RuntimeError, match="StreamFIFO: nothing left o within 1 cycles"):
        probe.latency("item", "the same item", "o", probe.push("i"), within=1)
    with pytest.raises(RuntimeError, match="LATENCY of StreamFIFO has no cycles from 'i' to 'o'"):
        stated(StreamFIFO, "i", "o")


def test_limits_of_a_run_come_from_the_registers():
    # Each lookup reaches the dedupe table of its owner.
    result = run(RunOptions.of(config="tiny", nodes=2, samples=64, mini_batch=16, seed=3,
                            settings=("remote_cache=false", "requester_merge=false")))
    found = limits(result)
    assert [limit.cycles for limit in found] == sorted((x.cycles for x in found), reverse=True)
    assert len(found) == 10 and found[0].cycles <= result["cycles"]
    total = {}
    for limit in found:
        total[limit.name] = total.get(limit.name, 0) + limit.cycles
    # PCIe at 12.59 GB/s and the network at 100 Gb/s, 24 bytes around a frame, cycles of 4 ns.
    assert total["PCIe to the host"] == pytest.approx(
        result["pcie"]["from_nic_bytes"] / (12.59 * 4))
    assert total["PCIe from the host"] == pytest.approx(
        result["pcie"]["to_nic_bytes"] / (12.59 * 4))
    frames, size = result["network"]["packets"], result["network"]["bytes"]
    assert total["network out"] == total["network in"] == pytest.approx(
        (size + 24 * frames) / (12.5 * 4))
    assert total["dedupe table"] == result["lookups"] == 64 * 26
    row = throughput_row("nic", result)
    assert row.value == pytest.approx(64 * 26 / 2 / result["cycles"])
    assert row.bound is not None and row.bound >= row.value and row.holds is None
    assert f"{found[0].name} of node {found[0].node} is the bottleneck" in row.note


def test_the_rows_of_a_nics_resources_share_one_report(monkeypatch):
    calls = []
    used = {"lut": 259_200, "ff": 1, "bram36": 403.5, "uram": 0, "dsp": 3_072, "depth": 10}

    def report(verilog, progress):
        calls.append(verilog)
        return {"name": "kaggle", "total": used, "blocks": [
            {"name": "kaggle__a", "depth": 3}, {"name": "kaggle__b", "depth": 10}]}

    monkeypatch.setattr(bench_resources, "to_verilog", lambda *_: "verilog")
    monkeypatch.setattr(bench_resources, "report_resources", report)
    rows = [row for job in bench_resources.resource_jobs() for row in job.measure(print)]
    assert len(calls) == 5
    # Per cent of 432,000 LUT, 672 BRAM36, 320 URAM, 3,072 DSP: at most 60, with bags or training
    # 75, with a link 75 of LUT and 80 of the rest; at most 10 LUT deep.
    assert [(row.value, row.holds) for row in rows] == [
        found for more in (False, True, True, True, True) for found in (
            (60.0, True), (pytest.approx(60.0446, abs=1e-3), more), (0.0, True),
            (100.0, False), (10, True))]
    names = ("kaggle on", "kaggle with owner_bags", "kaggle with owner_bags and repeats",
             "kaggle with training", "kaggle with training and link")
    assert all(row.name.startswith(names[k // 5]) or k == 4 for k, row in enumerate(rows))
    assert "deepest block alone: b (10)" in rows[-1].note


def test_keys_of_one_set_stay_as_equal_as_they_were():
    samples = trace(64)
    same = one_set(samples, 16, keys=2000)
    assert len(np.unique(same.rows)) == len(np.unique(samples.keys)) < 2000
    assert set(set_of(key_hash(same.tables, same.rows).astype(np.int64), 16)) == {0}
    first, again = np.unique(samples.keys, return_inverse=True)
    assert (same.rows == same.rows[np.unique(again, return_index=True)[1]][again]).all()
    assert len(first) > 500


@pytest.mark.thorough
@pytest.mark.few(1)
@pytest.mark.parametrize("vectors,packets", [(1, 300), (16, 24), (21, 20)])
def test_packets_of_each_size_fill_the_link(vectors, packets):
    """The rate of few packets includes the block's latency: 25 cycles, and the filling of a
    packet."""
    config = preset("kaggle").with_fields(nodes=4)
    on_link = packet_rate(config, vectors, packets, engine="pysim")
    free = packet_rate(config, vectors, packets, link=False, engine="pysim")
    assert on_link.payload == 22 + 64 * (1 + vectors)
    wire = packets * (on_link.payload + 66) / 50
    assert wire <= on_link.cycles <= wire + 25 + 2 * vectors + 8
    assert packets * (vectors + 2) <= free.cycles < on_link.cycles


@pytest.mark.thorough
def test_bags_are_counted_and_return_to_their_places():
    """Three bags of 1, 3 and 20 keys and a sample's record are five or six segments a sample."""
    config = TINY.with_fields(name="tiny_bags", owner_bags=64)
    made = bag_samples(np.array([1, 20, 3]), 8)
    asked, most, packets = requester_rate(config, made, engine="pysim")
    assert asked.items == 8 * 24 and 8 * 24 / (8 * 6.5) < most < 8 * 24 / (8 * 4.5)
    assert sum(len(parse_bags(words)) for _, words in packets) == 8 * 3
    assert {node for node, _ in packets} == {1, 2, 3}
    pooled, bound = owner_rate(config, 3, packets, engine="pysim")
    assert pooled.items == 8 * 24 and pooled.per_cycle < bound <= 24 / 4
    node, words = packets[0]
    words[0] |= np.uint64(0xFFF << 36)  # a table that does not exist
    bags = len(parse_bags(words))
    with pytest.raises(RuntimeError, match=f"{bags - 1} of {bags} vectors"):
        owner_rate(config, 3, [(node, words)], engine="pysim")


@pytest.mark.thorough
def test_repeated_bags_do_not_leave():
    """In two of three tables, every second bag repeats the bag before it."""
    config = TINY.with_fields(name="tiny_repeats", owner_bags=64, repeat_words=64,
                              repeat_vectors=4)
    made = bag_samples(np.array([1, 20, 3]), 8, run=2)
    found, most, packets = requester_rate(config, made, engine="pysim")
    assert sum(len(parse_bags(words)) for _, words in packets) == 8 * 3 - 8
    assert found.items == 8 * 24 and found.per_cycle < most
    # More bags leave than expected: only the first two positions are remembered.
    with pytest.raises(RuntimeError, match="a vector is not in the place of its bag"):
        requester_rate(config.with_fields(repeat_vectors=2), made, engine="pysim")


@pytest.mark.thorough
def test_pooling_keeps_a_beat_a_cycle():
    """Use the build of the pooler's own tests."""
    rate = pooling_rate(TINY, np.full(1600, 10), name="pooler")
    assert rate.items == 16_000 and rate.per_cycle >= 0.95
    wide = pooling_rate(TINY, np.full(1000, 4), vector_beats=4, name="pooler")
    assert wide.items == 16_000 and wide.per_cycle >= 0.95


@pytest.mark.parametrize("form", ["float32", "float16", "bfloat16", "int8", "int8_row"])
def test_decoding_keeps_a_beat_a_cycle(form):
    """The measurement itself checks the values."""
    for value_beats in (1, 3):
        rate = decoding_rate(TINY, form, value_beats=value_beats, vectors=400, engine="pysim")
        assert rate.items == 400 * value_beats and rate.per_cycle >= 0.95


@pytest.mark.thorough
def test_gradients_keep_a_beat_a_cycle():
    """The measurement itself checks the sums."""
    samples = trace(12)
    for level, keys, sums in (("global", 64, "exact"), ("local", 32, "exact"),
                              ("global", 64, "float32"), ("local", 32, "float32")):
        rate, answer = gradient_rate(TINY.with_fields(gradient_sums=sums), level, samples, lanes=1,
                                     engine="pysim")
        assert rate.items == 12 * 26 and answer["keys"] == keys and answer["passed"] > 80
        # The sums and the sets are read out, and the flush waits for the end of a quantum.
        assert rate.items <= rate.cycles <= rate.items + 4 * keys + 28 + 64
    hot = on_one_key(trace(200), 0.5)
    assert 0.45 < ((hot.tables == 0) & (hot.rows == 0)).mean() < 0.55
    assert len(gradient_jobs()) == 18


@pytest.mark.parametrize("name, n, dimension, cycles", [
    # 351 dots are 22 beats and, by 13, 27 groups; 231 are 15 and 18. The dense vector leaves too.
    ("kaggle", 27, 16, (27, 23, 27)), ("terabyte", 27, 64, (108, 26, 108)),
    ("kaggle", 22, 16, (22, 16, 18))])
def test_limits_of_the_dot_interaction(name, n, dimension, cycles):
    assert tuple(dot_limits(preset(name), n, dimension).values()) == cycles
    assert f"dot interaction, {n} x {dimension}" in [job.name for job in dot_jobs()]


@pytest.mark.slow
def test_dots_row_names_what_binds():
    """Ten vectors: 10 beats in, 4 out, and two units take 23 cycles for their 45 pairs."""
    config = TINY.with_fields(max_dimension=16, interaction_vectors=10)
    row = dot_row("dots", config, 10, 16, samples=12, engine="pysim")
    assert row.bound == 23 and row.target == pytest.approx(11) and row.holds is False
    # Beyond the groups, the latency of the last sample and the wait of the first.
    assert 23 * 12 <= 12 * row.value <= 23 * 12 + 80
    assert all(text in row.note for text in ("10 beats in", "4 beats out", "23 groups of dots"))
