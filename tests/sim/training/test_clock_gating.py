"""A training NIC with clock gating behaves like the emitted Verilog in each cycle."""

from pathlib import Path

import pytest

from sim.nic.build import nic_model
from sim.run.pcap import PcapFile
from sim.training.report import failures
from sim.training.train import Training
from tests.sim.training.compiled_nics import options, write

TIMES = {"wall_seconds", "node_cycles_per_second"}
MOVED = ("gradient_check.packets", "local_reducer.passed", "gradient_sender.remote",
         "partial_receiver.partials", "returned_receiver.partials", "global_reducer.passed",
         "row_updater.rows", "row_packager.packets")
"""Counters of every block with clock gating."""


def trained(path: str, capture: Path, clock_gating: bool) -> tuple[dict, bytes]:
    """Return the result of a training without wall times, and all frames with their times."""
    job = Training(options(path, samples=24, clock_gating=clock_gating, optimizer="rowwise-adagrad",
                           settings=("gradient_partials=rounded",)))
    frames = PcapFile(capture)
    result = job.execute(observer=frames)
    frames.close()
    assert failures(result) == [] and result["bit_identical"]
    assert all(node[name] > 0 for node in result["counters"] for name in MOVED)
    return ({name: value for name, value in result.items() if name not in TIMES},
            capture.read_bytes())


@pytest.mark.slow
def test_clock_gating_changes_nothing(tmp_path, monkeypatch):
    libraries = set()

    def recorded(*given, **options):
        nic = nic_model(*given, **options)
        libraries.add(nic._model.path)
        return nic

    monkeypatch.setattr("sim.run.backend.nic_model", recorded)
    path = write(tmp_path)
    gated, gated_frames = trained(path, tmp_path / "gated.pcap", True)
    plain, plain_frames = trained(path, tmp_path / "plain.pcap", False)
    assert len(libraries) == 2
    assert gated == plain
    assert gated_frames == plain_frames and len(plain_frames) > 10_000
    assert "clock_gating" not in plain["options"]
