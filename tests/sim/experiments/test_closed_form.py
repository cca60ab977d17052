"""``interval_us`` of FS and bl-tuned on Kaggle, computed independently from the profiles.

The numbers are read from the TOML files, and the formulas are written out here, without steps,
stages or a scheduler. With enough mini-batches in flight, an interval is the time of the busiest
resource. With eager software, and for the full system with graphs, this is the host thread. With
four in flight, bl-tuned with graphs waits for the latency of each. A mini-batch alone takes the
longest path. NIC times come from the simulation.
"""

import tomllib
from functools import cache
from importlib.resources import files
from math import ceil

import numpy as np
import pytest

from host.data.generator import generate
from host.model import MODELS
from host.samples import concatenate
from sim.evaluation.measure import measure
from sim.evaluation.point import Point

MODEL, NODES, BATCH, SHARE, WARMUP, MEASURED = MODELS["kaggle"], 4, 128, 32, 4, 8


def profile(name: str) -> dict:
    return tomllib.loads((files("host") / "profiles" / f"{name}.toml").read_text())


GPU, PCIE, NET, NCCL = (profile(name) for name in (
    "gpu_rtx8000", "pcie_gen3x16", "ethernet_100g_switch", "nccl_network"))


@cache
def measured(system: str, software: str, in_flight: int | None = None, **fields) -> dict:
    return measure(Point.named(system, software=software, warmup=WARMUP, measured=MEASURED,
                               in_flight=in_flight, **fields))


def note(found: dict) -> str:
    return next(text for text in found["notes"] if text.startswith("fastest with"))


def test_eager_software_is_the_sum_of_its_calls():
    cost = profile("software_eager")
    layers = len(MODEL.bottom) + len(MODEL.top)  # a product and an activation each
    # FS: both MLPs, copies of dense features and predictions, two doorbells, an operator each, and
    # three waits: for the bottom MLP, answers and predictions.
    assert measured("fs", "eager")["interval_us"] == pytest.approx(
        (2 * layers + 2) * cost["operator_us"] + 2 * cost["copy_us"] + 2 * cost["doorbell_us"]
        + 3 * cost["synchronize_us"], rel=0.02)
    # bl-tuned: a collective for two exchanges, two operators for the order of indices, four
    # of the interaction, and two that look up the joined table of a node; two copies.
    tuned = measured("bl-tuned", "eager")
    assert "joined" in note(tuned) and "grouped" in note(tuned) and "dedupe" not in note(tuned)
    calls = 1 + 2 + 2 + 2 * layers + 4
    assert tuned["interval_us"] == pytest.approx(
        calls * cost["operator_us"] + 2 * cost["copy_us"] + cost["synchronize_us"], rel=0.02)


def product_us(inputs: int, outputs: int) -> float:
    """A layer's product: whole tiles run in parallel, each at the rate of a multiprocessor."""
    assert ceil(SHARE / 64) * ceil(outputs / 64) <= GPU["multiprocessors"]
    rate = GPU["float32_tflops"] * 1e6 * GPU["gemm_fraction"] / GPU["multiprocessors"]
    moved = 4 * (SHARE * inputs + inputs * outputs + outputs + SHARE * outputs)
    return GPU["kernel_us"] + max(
        2 * 64 * 64 * inputs / rate,
        moved / (GPU["memory_bandwidth_gb_s"] * 1e3 * GPU["stream_fraction"]))


def layers_us(layers) -> float:
    return sum(product_us(*layer) for layer in layers)


def test_graphs_of_the_full_system_are_called_twice():
    cost, found = profile("software_tuned"), measured("fs", "tuned")
    launch = cost["graph_us"] + GPU["launch_us"]
    features = 2 * PCIE["one_way_us"] + 4 * MODEL.dense * SHARE / (PCIE["bandwidth_gb_s"] * 1e3)
    wait = cost["synchronize_us"]
    # The doorbell of the queries, a graph, dense features, the bottom MLP; the NIC is notified and
    # fetches dense vectors.
    before = (cost["doorbell_us"] + launch + features + layers_us(MODEL.bottom_layers) + wait
              + cost["doorbell_us"] + PCIE["one_way_us"])
    # After the results, the host launches the top MLP, and predictions are copied.
    after = (wait + launch + layers_us(MODEL.top_layers) + PCIE["one_way_us"]
             + 4 * SHARE / (PCIE["bandwidth_gb_s"] * 1e3) + wait)
    path = before + found["nic_us"]["interaction"] + after
    assert found["nic_us"]["service"] < before  # lookups finish earlier
    # The graph algorithm has formed the mini-batch before: it takes a time for each key.
    formed = MODEL.tables * BATCH * profile("cpu_xeon_6226r")["graph_key_ns"] / 1e3
    assert found["service_us"] == pytest.approx(formed + path, rel=0.02)
    # Two graphs, a doorbell before each, and three waits.
    assert found["interval_us"] == pytest.approx(
        2 * (cost["graph_us"] + cost["doorbell_us"]) + 3 * wait, rel=0.02)
    assert path < found["in_flight"] * found["interval_us"]


def test_en_needs_its_host_for_a_doorbell_a_graph_and_a_wait():
    cost = profile("software_tuned")
    # Fixed options instead of a search: unique delivery, no tables on the GPU.
    found = measure(Point.named("en", software="tuned", warmup=WARMUP, measured=MEASURED,
                                fixed=("deliver=unique", "copied_rows=0")))
    assert found["busy_us"]["cpu"] == pytest.approx(
        cost["doorbell_us"] + cost["graph_us"] + cost["synchronize_us"])
    # Mini-batches in flight delay each other by their kernels' work at most.
    flight = found["in_flight"]
    assert max(found["busy_us"].values()) <= found["interval_us"] <= (
        found["service_us"] + (flight - 1) * found["busy_us"]["gpu"]) / flight
    features = 2 * PCIE["one_way_us"] + 4 * MODEL.dense * SHARE / (PCIE["bandwidth_gb_s"] * 1e3)
    # The doorbell, a graph, dense features, the bottom MLP; the NIC has written its word earlier:
    # a doorbell, results and word, a short write, and a poll.
    before = (cost["doorbell_us"] + cost["graph_us"] + GPU["launch_us"] + features
              + layers_us(MODEL.bottom_layers))
    word = (cost["doorbell_us"] + 2 * PCIE["one_way_us"] + found["nic_us"]["service"]
            + PCIE["write_us"] + GPU["poll_us"])
    assert word < before
    # A kernel of the least time expands and interacts; then the top MLP and the predictions.
    assert found["service_us"] == pytest.approx(
        before + GPU["kernel_us"] + layers_us(MODEL.top_layers) + PCIE["one_way_us"]
        + 4 * SHARE / (PCIE["bandwidth_gb_s"] * 1e3) + cost["synchronize_us"], rel=0.02)


def exchange_us(traffic: np.ndarray) -> float:
    """A grouped NCCL exchange between four GPUs: base, a hop, and the busiest link's bytes."""
    bytes_ = traffic * (1 - np.eye(NODES))
    small = bytes_.max() <= NCCL["ll_most_bytes"]
    kind, data = ("ll", NCCL["ll_fraction"]) if small else ("simple", 1.0)
    payload, header = 1472, 42 + NET["overhead_bytes"]
    rate = NET["bandwidth_gbit_s"] / 8 * 1e3 * payload / (payload + header)
    moving = max(bytes_.sum(axis=0).max(), bytes_.sum(axis=1).max()) / rate / data
    return NCCL[f"base_{kind}_us"] + NCCL[f"hop_{kind}_us"] + moving


def test_graphs_of_the_tuned_baseline_take_a_fourth_of_their_latency():
    copied = 10_000
    cost, found = profile("software_tuned"), measured(
        "bl-tuned", "tuned", 4, fixed=(f"copied_rows={copied}", "dedupe=false", "key_bytes=8"))
    assert ("fused" in note(found)) != ("joined" in note(found))
    # Uncopied tables, placed evenly: the largest first, on the node with fewest rows.
    large = [table for table in np.argsort([-rows for rows in MODEL.rows], kind="stable")
             if MODEL.rows[table] > copied]
    most, fuller = divmod(len(large), NODES)
    owner, held, count = {}, [0] * NODES, [0] * NODES
    for table in large:
        full = sum(number > most for number in count)
        may = [node for node in range(NODES) if count[node] < most
               or (count[node] == most and full < fuller)]
        node = min(may, key=lambda node: (held[node], node))
        owner[table] = node
        held[node] += MODEL.rows[table]
        count[node] += 1
    samples = concatenate(list(generate(MODEL, (WARMUP + MEASURED) * BATCH, 1)))
    assert len(samples) == (WARMUP + MEASURED) * BATCH
    # Each sample looks up a key in each table: every requester sends a lookup per table.
    lookups = np.array([[SHARE * sum(owner[table] == node for table in owner)
                         for node in range(NODES)] for _ in range(NODES)], float)
    inputs = 4 * MODEL.dense * SHARE + 16 * MODEL.tables * SHARE
    exchanged = exchange_us(16 * lookups) + exchange_us(4 * MODEL.dimension * lookups.T)
    kernel, wait = GPU["kernel_us"], cost["synchronize_us"]
    # Indices by table, gathers (an additional kernel for joined tables) and the interaction take
    # hardly more than a kernel without work.
    sparse = exchanged + (2 + ("joined" in note(found))) * kernel
    bottom = layers_us(MODEL.bottom_layers)
    path = (cost["graph_us"] + GPU["launch_us"] + 2 * PCIE["one_way_us"]
            + inputs / (PCIE["bandwidth_gb_s"] * 1e3)
            + (max(sparse, bottom) if "overlap" in note(found) else sparse + bottom) + kernel
            + layers_us(MODEL.top_layers) + PCIE["one_way_us"]
            + 4 * SHARE / (PCIE["bandwidth_gb_s"] * 1e3) + wait)
    assert found["service_us"] == pytest.approx(path, rel=0.02)
    # The kernels of three others delay it while its own kernels run; collectives do neither.
    length, kernels = 4 * found["interval_us"], (
        sparse - exchanged + bottom + kernel + layers_us(MODEL.top_layers))
    taken = found["busy_us"]["gpu"] - exchanged * NCCL["channels"] / GPU["multiprocessors"]
    assert length == pytest.approx(path + 3 * taken * (1 - (path - kernels) / length), rel=0.02)
