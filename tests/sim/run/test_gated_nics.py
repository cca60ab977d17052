"""A serving NIC with clock gating behaves in each cycle like the emitted Verilog."""

import pytest

from sim.run.pcap import PcapFile
from tests.sim.interacting import job_of, model_of, write_model

TIMES = {"wall_seconds", "cpu_seconds", "node_cycles_per_second"}
CASES = {
    "pooled": ((), {"in_flight": 4}),
    "mean, one at a time": (("pooling=mean",), {"in_flight": 1}),
    "unique": (("requester_merge=true", "deliver=unique", "completions=true"), {"in_flight": 4}),
    "rings": (("gpu_rings=true", "remote_cache=false"), {"in_flight": 2}),
    "row reads": (("row_reads=true", "remote_cache=false"), {"in_flight": 2}),
    "late": (("completions=true", "step_timeout=20000"), {"in_flight": 4}),
    "interaction": (("interaction=true", "completions=true"), {"in_flight": 4}),
    "queues of each owner": (("output_queues=true", "lookup_timeout=5"), {"in_flight": 4}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_clock_gating_changes_nothing(tmp_path, case):
    path = write_model(tmp_path / "model.toml", model_of(16, "to 9"))
    settings, options = CASES[case]
    found = []
    for gating in (True, False):
        job, capture = job_of(path, *settings, clock_gating=gating, **options), tmp_path / "frames"
        with PcapFile(capture) as frames:
            result = job.execute(observer=frames)
        assert result["complete"] and not result["results"]["different"]
        found.append(({name: value for name, value in result.items() if name not in TIMES},
                      capture.read_bytes()))
    assert found[0] == found[1] and len(found[0][1]) > 10_000
