"""Bytes of the backward all-to-all, counted in plain Python from docs/training.md."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.exact import exact_sums, split
from host.model import load_model
from host.placement.shard import ShardPlan
from host.samples import KEY_ROW_BITS, rechunk
from host.wire.packets import parse_header
from rtl.config import LANES, beats_of, packing_of
from rtl.formats import BEAT_BYTES, RECORDS_PER_BEAT, EmberHeader, Opcode
from rtl.keys.hash_columns import COLUMNS
from tests.sim.training.compiled_nics import SETS, WAYS, Given, write

STEPS, SAMPLES, NODES = 3, 12, 3


def set_of(key: int) -> int:
    """Return the set of ``key`` in a key table."""
    hashed = 0
    for place, column in enumerate(COLUMNS):
        hashed ^= column * (key >> place & 1)
    return (hashed >> 8) * SETS >> 24


def reduced(keys: list[int], beats: np.ndarray, partials: str) -> Counter:
    """Return the number of partials for each key of a node's samples in a step.

    beats: beats of each key, ``[keys, n, lanes]``.
    """
    if partials == "rounded":
        # Beats that do not fit return from the host in later passes.
        return Counter(dict.fromkeys(keys, beats.shape[1]))
    held: list[dict[int, list[np.ndarray]]] = [{} for _ in range(SETS)]
    counts = Counter()
    for key, vector in zip(keys, beats):
        table = held[set_of(key)]
        if key in table or len(table) < WAYS:
            table.setdefault(key, []).append(vector)
        else:
            counts[key] += len(vector)
    for table in held:
        for key, vectors in table.items():
            for place in range(beats.shape[1]):
                sums = exact_sums(np.array([vector[place] for vector in vectors]))
                counts[key] += max(len(split(total)) for total in sums)
    return counts


def values(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return float32 of many magnitudes, whose exact sums need several float32."""
    return np.ldexp(rng.standard_normal(shape), rng.integers(-20, 20, shape)).astype(np.float32)


@pytest.mark.thorough
@pytest.mark.parametrize("dimension", [16, pytest.param(4, marks=pytest.mark.slow),
                                       pytest.param(32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("partials", ["exact", "rounded"])
def test_beats_and_bytes(tmp_path, partials, dimension):
    path = write(tmp_path, dimension)
    model = load_model(path)
    plan = ShardPlan.deal(model, NODES, "row")
    steps = list(islice(rechunk(generate(model, STEPS * SAMPLES, 3), SAMPLES), STEPS))
    rng = np.random.default_rng(5)
    gradients = [values(rng, (len(part), model.tables, dimension)) for part in steps]
    sent_in_all = {}
    for local in (True, False):
        expected = Counter()
        for part, given in zip(steps, gradients):
            for node in range(NODES):
                share = slice(node * SAMPLES // NODES, (node + 1) * SAMPLES // NODES)
                mine = part.slice(share.start, share.stop)
                keys = mine.keys.tolist()
                each = np.repeat(given[share].reshape(-1, dimension), mine.bag_lengths.reshape(-1),
                                 axis=0).reshape(len(keys), beats_of(dimension), -1)
                counts = reduced(keys, each, partials) if local else Counter(
                    {key: keys.count(key) * each.shape[1] for key in keys})
                for key, count in counts.items():
                    owner = int(plan.owner_of(np.array([key >> KEY_ROW_BITS]),
                                              np.array([key & (1 << KEY_ROW_BITS) - 1]))[0])
                    if owner != node:
                        expected[node, owner] += count

        found, payload, packets = Counter(), Counter(), Counter()

        def observer(frames, found=found, payload=payload, packets=packets):
            for _, source, frame in frames:
                head = parse_header(frame[0])
                if head.opcode == Opcode.PARTIALS:
                    found[source, head.destination] += head.count
                    packets[source] += 1
                    # Records, eight a beat, then values.
                    beats = -(-head.count // RECORDS_PER_BEAT) - (
                        -head.count // (1 << packing_of(min(dimension, LANES))))
                    assert len(frame) == 1 + beats
                    payload[source] += EmberHeader.size // 8 + beats * BEAT_BYTES

        nics = Given(path, observer, nodes=NODES, settings=(
            f"gradient_partials={partials}", f"local_reduction={str(local).lower()}"))
        for part, given in zip(steps, gradients):
            nics.step(part, given)
        result = nics.result()
        assert result["bit_identical"] and found == expected
        for node, sent in enumerate(result["backward"]):
            assert sent["partials"] == sum(
                count for (source, _), count in expected.items() if source == node)
            assert sent["packets"] == packets[node] and sent["bytes"] == payload[node]
            assert sent["bytes"] == packets[node] * EmberHeader.size // 8 + (
                sent["beats"] * BEAT_BYTES)
        sent_in_all[local] = sum(found.values()), sum(payload.values())
    print(f"{partials}, dimension {dimension}: beats and bytes {sent_in_all[True]} with local "
          f"reduction, {sent_in_all[False]} without")
    # An exact sum may need more beats than its terms, and several passes more packets.
    assert partials == "exact" or sent_in_all[True][0] < sent_in_all[False][0]
