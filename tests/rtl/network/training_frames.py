"""Random frames of training, as packed by the host, and their expected beats."""

import numpy as np

from host.wire.gradients import gradient_packets
from host.wire.partials import partial_packets, partials_that_fit
from rtl.config import NicConfig, beats_of, packing_of
from rtl.formats import Opcode
from tests.rtl.network.frames import GPU_VECTORS, LOOKUPS, QUERIES, VECTORS, Frame
from tests.rtl.network.random_frames import (
    NODE,
    expected_records,
    expected_vectors,
    records_frame,
    vectors_frame,
)

__all__ = ["CONFIG", "LIMIT", "PORTS", "port_frame"]

CONFIG = NicConfig(max_dimension=64, net_payload_beats=6, host_payload_beats=12)
LIMIT = {"ethernet": 6, "host": 12}
PORTS = {
    "ethernet": {"partials": Opcode.PARTIALS, "steps": Opcode.STEPS},
    "host": {"gradients": Opcode.GRADIENTS, "returned": Opcode.RETURNED, "states": Opcode.STATES,
             "written": Opcode.WRITTEN}}
"""For each framing, the ports for packets of training, with their opcodes."""


def _framed(rng, framing, packet, opcode, count):
    """Return a frame with the payload that the host packed."""
    return Frame(opcode=opcode, framing=framing, source=rng.choice([0, 1, 3]), destination=NODE,
                 step=rng.getrandbits(16), credit=rng.getrandbits(16), count=count,
                 payload=packet[1:].tobytes())


def _values_frame(rng, framing, opcode, dimension, most=None):
    """Return a frame of partials."""
    width, numbers = min(16, dimension), np.random.default_rng(rng.getrandbits(32))
    count = most or rng.randrange(1, partials_that_fit(LIMIT[framing], width) + 1)
    packet, = partial_packets(
        opcode, numbers.integers(64, size=count), numbers.integers(1 << 36, size=count),
        numbers.integers(beats_of(dimension), size=count),
        numbers.random((count, width), np.float32), node=NODE, step=0,
        payload_beats=LIMIT[framing])
    return _framed(rng, framing, packet, opcode, count), -(-count // 8)


def _gradients_frame(rng, dimension):
    numbers = np.random.default_rng(rng.getrandbits(32))
    lengths = numbers.integers(1, 9, size=rng.randrange(1, 3))
    packet, = gradient_packets(
        numbers.integers(64, size=lengths.sum()), numbers.integers(1 << 36, size=lengths.sum()),
        lengths, numbers.random((len(lengths), dimension), np.float32), node=NODE, step=0,
        payload_beats=LIMIT["host"])
    count = int(lengths.sum())
    return _framed(rng, "host", packet, Opcode.GRADIENTS, count), -(-count // 8)


def _expected_beats(frame, record_beats, counted):
    beats = [frame.payload[k:k + 64] for k in range(0, len(frame.payload), 64)]
    left, expected = frame.count, []
    for k, beat in enumerate(beats):
        item = {"data": int.from_bytes(beat, "little"),
                "records": min(8, left) if k < record_beats else 0, "source": frame.source,
                "step": frame.step, "last": int(k == len(beats) - 1)}
        expected.append({"beat": item, "count": left} if counted else item)
        left = max(0, left - 8)
    return expected


def port_frame(rng, framing, name, dimension):
    """Return a frame for port ``name``, of training or ``records`` or ``vectors``, and its expected
    output."""
    opcode = PORTS[framing].get(name)
    if name == "vectors":
        frame, vectors = vectors_frame(
            rng, beats_of(dimension), VECTORS if framing == "ethernet" else GPU_VECTORS,
            LIMIT[framing], packing=packing_of(dimension), framing=framing)
        return frame, expected_vectors(frame, vectors)
    if name == "gradients":
        frame, record_beats = _gradients_frame(rng, dimension)
    elif name in ("partials", "returned"):
        frame, record_beats = _values_frame(rng, framing, opcode, dimension)
    else:
        frame, records = records_frame(
            rng, opcode or (LOOKUPS if framing == "ethernet" else QUERIES), LIMIT[framing],
            framing=framing)
        if name == "records":
            return frame, expected_records(frame, records)
        record_beats = len(frame.payload) // 64
    return frame, _expected_beats(frame, record_beats, name in ("partials", "returned"))
