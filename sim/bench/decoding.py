"""Rate of the vector decoder: beats of float32 per cycle for each format of vectors."""

import numpy as np

from host.dlrm.codecs import CODECS
from host.wire.layouts import pack, unpack
from rtl.config import BEAT_BITS, LANES, NicConfig
from rtl.formats import RecordKind, ValueFormat
from rtl.interaction import VectorDecoder
from rtl.interaction.records import SlotBeat
from sim.bench.rates import Rate, settle
from sim.engines import load

__all__ = ["decoding_rate"]

_WORDS = BEAT_BITS // 32
_SETTINGS = 8
"""Cycles from the settings to the first vector, at least six."""


def decoding_rate(config: NicConfig, form: str, *, value_beats: int = 1, vectors: int = 20_000,
                  engine: str = "verilator") -> Rate:
    """Return beats of float32 per cycle of the decoder, from the first beat offered to the last
    beat out.

    form: name of the vectors' format. value_beats: beats of float32 of a vector.

    Raises ``RuntimeError`` if a beat is missing or differs from the codec's values.
    """
    running = load(VectorDecoder(SlotBeat, config.vector_beats, codes=True),
                   f"vector_decoder_{config.name}", engine,
                   recipe=f"VectorDecoder({config!r}, codes=True)").instance()
    running.set_signal("value_format", ValueFormat[form.upper()])
    running.set_signal("value_beats", value_beats)
    running.set_signal("value_count", value_beats * LANES)
    values = np.random.default_rng(1).standard_normal(
        (vectors, value_beats * LANES)).astype(np.float32)
    codec = CODECS[form]
    words = codec.encode(values)
    beats = -(-words.shape[1] // LANES)
    slots = pack(SlotBeat, vectors * beats, kind=int(RecordKind.KEY_END),
                 beat_last=np.arange(vectors * beats) % beats == beats - 1)
    padded = np.zeros((vectors, beats * LANES), "<u4")
    padded[:, :words.shape[1]] = words
    slots[:, :_WORDS] = padded.reshape(-1, LANES)
    start = settle(running) + _SETTINGS
    running.push("i", slots, start)
    wanted = vectors * value_beats
    running.run(start + 2 * wanted + 100)
    found, cycles = running.pop("o")
    right = codec.decode(words, values.shape[1]).view("<u4").reshape(-1, LANES)
    ends = np.arange(wanted) % value_beats == value_beats - 1
    if len(found) != wanted or not np.array_equal(found[:, :_WORDS], right) or not np.array_equal(
            unpack(SlotBeat, found, "beat_last"), ends):
        raise RuntimeError(f"the decoder returned {len(found)} of {wanted} beats of {form}, or "
                           f"other values")
    return Rate(f"decoding, {form}", wanted, int(cycles[-1]) + 1 - start)
