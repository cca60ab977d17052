"""Training on eight GPUs of one host, and on 16 GPUs of two hosts joined by a 100 Gb/s NIC."""

from dataclasses import replace

import numpy as np

from host.devices.nccl import NcclProfile
from host.devices.software import SoftwareProfile
from host.devices.topology import Topology, TopologyProfile
from host.measurements.published import Drop, DropModel, drop
from host.model import Model
from host.timing.network import NetworkProfile
from host.toml.profile import load_profile
from sim.experiments.checks.check import Check, Comparison, percent
from sim.experiments.checks.composed import cross_model, even_plan, torchrec_step_us, work_of

__all__ = ["comparison", "comparison_readme"]

_BOUND = 0.3
_GPU = "gpu_a100"


def comparison() -> Comparison:
    """Return the slowdown of an iteration by the second host, and the rates."""
    found = drop()
    one, two = _rate(found.model, 1), _rate(found.model, 2)
    hot = found.model.multi_hot
    kept = _rate(replace(found.model, samples_of_gpu=found.model.samples_of_gpu // 2), 2)
    batch = 8 * found.model.samples_of_gpu
    checks = [
        Check("drop of iterations a second", one / two, found.one_host / found.two_hosts, "x",
              _BOUND, 16, 2 * batch, _GPU),
        Check("iterations a second, one host", one, found.one_host, "/s", None, 8, batch, _GPU),
        Check("iterations a second, two hosts", two, found.two_hosts, "/s", None, 16, 2 * batch,
              _GPU),
        Check("the same with the global mini-batch of one host", kept, found.two_hosts, "/s", None,
              16, batch, _GPU),
        Check("drop with the lookups of MLPerf's second DLRM",
              _rate(found.model, 1, hot) / _rate(found.model, 2, hot),
              found.one_host / found.two_hosts, "x", None, 16, 2 * batch, _GPU)]
    checks += [Check(f"drop if the NIC carries {rate:g} GB/s", one / _rate(
        found.model, 2, network_gb_s=rate), found.one_host / found.two_hosts, "x", None, 16,
        2 * batch, _GPU) for rate in found.tcp_gb_s]
    return Comparison.of(
        "100 Gb/s NIC", "TorchRec on 8 A100s, and on 16 over one 100 Gb/s NIC", "dlrm issue 356",
        "The drop, because a ratio depends less on values that the thread omits: model, mini-batch "
        "and command. They are inferred from the rate on one host (host/measurements/"
        "network_drop.toml). The samples per GPU are constant, like the program's option.",
        checks, _conclusion(found, checks, one))


def comparison_readme() -> Comparison:
    """Return the wall-clock rates of the program's README on one host."""
    found = drop()
    checks = [Check(
        f"iterations a second, {row.samples_of_gpu:,} samples a GPU, {row.interaction}",
        _rate(replace(found.model, samples_of_gpu=row.samples_of_gpu), 1,
              dot=row.interaction == "dot"),
        row.rate, "/s", _BOUND, 8, 8 * row.samples_of_gpu, _GPU) for row in found.readme]
    (few, many) = (row.rate for row in found.readme if row.interaction == "dot")
    software = load_profile("software_eager", SoftwareProfile)
    return Comparison.of(
        "TorchRec README", "TorchRec on 8 A100s, wall clock",
        "TorchRec's DLRM on eight A100s",
        "Every rate of the README. The bound is that of the drop over two hosts.", checks,
        f"Cause: on {few:g} iterations per second a step takes {1e3 / few:.0f} ms, and with eight "
        f"times the samples {1e3 / many:.0f} ms. The model adds calls of {software.operator_us:g} "
        f"us and {software.fused_embedding_us:g} us for a batched lookup. It omits the program "
        "around them: the data loader, the split of jagged tensors by table, the pipeline's "
        "streams, and autograd. With few samples, this software takes most of the time; with "
        "16,384 samples per GPU the GPU does, and the model agrees.")


def _model(found: DropModel, dot: bool = False) -> Model:
    if dot:
        return Model(found.rows, found.dimension, found.dense, found.bottom, found.top)
    return cross_model(found.rows, found.dimension, found.dense, found.bottom, found.top,
                       found.cross_layers, found.cross_rank)


def _topology(hosts: int) -> TopologyProfile:
    return TopologyProfile.of(load_profile("ethernet_100g_switch", NetworkProfile), hosts,
                              inside=load_profile("topology_dgx_a100", TopologyProfile).levels)


def _rate(found: DropModel, hosts: int, hot: tuple[int, ...] = (), dot: bool = False,
          network_gb_s: float = 0.0) -> float:
    """Return iterations per second, with ``hot`` lookups of each table or one; ``network_gb_s``
    replaces the NIC's rate if above 0."""
    hot = hot or (1,) * len(found.rows)
    model, topology = _model(found, dot), _topology(hosts)
    if network_gb_s:
        inner, outer = topology.levels
        topology = replace(topology, levels=(inner, replace(outer, bandwidth_gb_s=network_gb_s)))
    work = work_of(model, even_plan(model, 8 * hosts, hot), found.samples_of_gpu, hot)
    nccl = load_profile("nccl_network", NcclProfile)
    return 1e6 / torchrec_step_us(work, _GPU, nccl, Topology(topology))


def _crossing_bytes(found: DropModel) -> float:
    """Return the bytes that leave a host in an iteration: indices, vectors both ways, gradients."""
    model = _model(found)
    hot = (1,) * model.tables
    work = work_of(model, even_plan(model, 16, hot), found.samples_of_gpu, hot)
    outside = np.kron(1 - np.eye(2), np.ones((8, 8)))
    exchanged = 8 * (work.lookups + work.bags) + 2 * 4 * model.dimension * work.bags
    return float((exchanged * outside).sum() / 2 + 2 * (15 / 16) * 4 * model.mlp_parameters)


def _needed_gb_s(found: Drop, wanted: float) -> float:
    """Return the network rate at which our model has ``wanted`` iterations per second."""
    low, high = 0.01, 100.0
    for _ in range(60):
        middle = (low * high) ** 0.5
        if _rate(found.model, 2, network_gb_s=middle) < wanted:
            low = middle
        else:
            high = middle
    return high


def _conclusion(found: Drop, checks: list[Check], one: float) -> str:
    crossing = _crossing_bytes(found.model)
    needed = _needed_gb_s(found, one / (found.one_host / found.two_hosts))
    rate = _topology(2).levels[1].bandwidth_gb_s
    verdict = "within the bound" if checks[0].good else "outside the bound"
    slow, fast = min(found.tcp_gb_s), max(found.tcp_gb_s)
    arithmetic = (_model(found.model).mlp_parameters / _model(found.model, True).mlp_parameters)
    dcn, dot = (next(row.rate for row in found.readme
                     if (row.samples_of_gpu, row.interaction) == (2048, kind))
                for kind in ("dcn", "dot"))
    return (f"The drop is {verdict} ({percent(checks[0].error)}). In an iteration "
            f"{crossing / 1e6:,.0f} MB leave a host, {crossing / rate / 1e6:.0f} ms at the NIC's "
            f"{rate:g} GB/s. Cause: our model shows their drop if the NIC carries {needed:.2f} "
            f"GB/s, {needed / rate:.0%} of its rate. The best measured rate of NCCL over TCP on "
            f"100 Gb/s between hosts of eight GPUs is {slow:g} to {fast:g} GB/s (NVIDIA/nccl, "
            "issue 450). The thread does not mention RDMA, and its profile shows the network: the "
            f"first exchange of indices ends after {found.exchange_ms[0]:g} ms on one host and "
            f"{found.exchange_ms[1]:g} on two. One host: error {percent(checks[1].error)} of the "
            "rate from which the mini-batch was inferred. The README's rates show that the GPUs "
            f"alone do not set that rate: with 2,048 samples per GPU, {dcn:g} and {dot:g} "
            f"iterations per second for two interactions, although one has {arithmetic:.0f} times "
            "the weights. Our model omits the data reader and its calls.")
