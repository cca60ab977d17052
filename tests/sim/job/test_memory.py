"""Runs and training whose rows exceed the GPU memory of the cluster are rejected, with bytes."""

import re

import pytest

from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile
from sim.job.options import RunOptions
from sim.run.run import Run
from sim.training.options import TrainOptions
from sim.training.train import Training

MODEL = """name = "big"
dimension = 16
dense = 13
bottom = [16]
top = [1]
[[tables]]
name = "a"
rows = {rows}
"""
COMMON = dict(cluster="paper", nodes=4, samples=8, threads=1, placement="row", fidelity="model")


def model(tmp_path, rows: int) -> str:
    path = tmp_path / "big.toml"
    path.write_text(MODEL.format(rows=rows))
    return str(path)


def test_a_run(tmp_path):
    path = model(tmp_path, 5_000_000_000)
    message = re.escape("bytes of a GPU must be at most the 48,000,000,000 of GPU memory of "
                        "cluster paper, not 80,000,0")
    with pytest.raises(ValueError, match=message + ".* at GPU 0 for model big: use more "
                                                   "nodes, another placement or a smaller model"):
        Run(RunOptions.of(model=path, **COMMON))
    Run(RunOptions.of(model=model(tmp_path, 2_900_000_000), **COMMON))
    Run(RunOptions.of(model=path, **COMMON | {"cluster": None, "config": "avazu"}))


def test_the_state_of_an_optimizer_counts(tmp_path):
    path = model(tmp_path, 2_900_000_000)
    with pytest.raises(ValueError, match="GPU memory of cluster paper, not 49,300,0"):
        Training(TrainOptions.of(model=path, optimizer="rowwise-adagrad",
                                 **COMMON | {"fidelity": "rtl"}))


def test_a_cluster_of_several_gpus_per_nic(tmp_path):
    path = model(tmp_path, 5_000_000_000)
    common = COMMON | {"cluster": "two_hosts", "nodes": None}
    run = Run(RunOptions.of(model=path, **common))  # 20 GB for each of 16 GPUs
    assert (run.plan.nodes, run.options.workload.gpus) == (2, 8)
    assert run.options.workload.gpu.call_us == 0 and run.options.workload.gpu.float32_tflops == 156
    path = model(tmp_path, 21_000_000_000)
    with pytest.raises(ValueError, match="GPU memory of cluster two_hosts, not 84,000"):
        Run(RunOptions.of(model=path, **common))
    whole = COMMON | {"cluster": "two_hosts", "nodes": None, "placement": "9"}
    with pytest.raises(ValueError, match=r"not 320,000,000,\d+ at GPU 9 for model big"):
        Run(RunOptions.of(model=model(tmp_path, 5_000_000_000), **whole))
    other = RunOptions.of(cluster="two_hosts", gpu="gpu_h100").workload.gpu
    assert other.memory_bandwidth_gb_s == 8 * load_profile(
        "gpu_h100", GpuProfile).memory_bandwidth_gb_s
    nics = RunOptions.of(cluster="zionex", nodes=2).workload
    assert (nics.nodes, nics.gpus) == (16, 1)
