"""Random frames of bags that pool at their owner, and their expected beats."""

from rtl.config import beats_of, packing_of
from rtl.formats import Opcode
from tests.rtl.network.frames import VECTORS
from tests.rtl.network.random_frames import expected_vectors, records_frame, vectors_frame
from tests.rtl.network.training_frames import LIMIT, port_frame

__all__ = ["BAG_PORTS", "bag_frame"]

BAG_PORTS = {
    "ethernet": {"bags": Opcode.BAGS, "bag_vectors": Opcode.BAG_VECTORS},
    "host": {"bag_vectors": Opcode.GPU_BAGS}}
"""For each framing, the ports for packets of owner pooling, with their opcodes."""


def bag_frame(rng, framing, name, dimension, **fields):
    """Return a frame for port ``name``, of owner pooling or any other port, and its expected
    output."""
    opcode = BAG_PORTS[framing].get(name)
    if opcode is None:
        return port_frame(rng, framing, name, dimension)
    fields = {"framing": framing} | fields
    if name == "bag_vectors":
        beats = rng.randint(1, beats_of(dimension))
        frame, vectors = vectors_frame(rng, beats, opcode, LIMIT[framing], **{
            "packing": packing_of(dimension), "final_beat": beats - 1} | fields)
        source = {"source": frame.source} if framing == "ethernet" else {}
        assert frame.opcode != VECTORS
        return frame, [beat | source for beat in expected_vectors(frame, vectors)]
    frame, words = records_frame(rng, opcode, LIMIT[framing], **fields)
    beats = [frame.payload[k:k + 64] for k in range(0, len(frame.payload), 64)]
    return frame, [{
        "data": int.from_bytes(beat, "little"), "records": min(8, len(words) - 8 * k),
        "source": frame.source, "step": frame.step, "last": int(k == len(beats) - 1)}
        for k, beat in enumerate(beats)]
