"""Rate of the pooler: beats per cycle for bags of various lengths."""

from functools import lru_cache

import numpy as np

from host.wire.layouts import pack
from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import RecordKind
from rtl.interaction import Pooler
from rtl.interaction.records import SlotBeat
from sim.bench.rates import Rate, settle
from sim.engines import Model, load

__all__ = ["pooling_rate"]

_BAGS_OF_A_SAMPLE = 26


@lru_cache(maxsize=2)
def _model(config: NicConfig, name: str, engine: str) -> Model:
    """Return the compiled pooler; cached for all bag lengths, because conversion takes long."""
    return load(Pooler(config), name, engine, recipe=f"Pooler({config!r})")


def pooling_rate(config: NicConfig, lengths: np.ndarray, *, vector_beats: int = 1, seed: int = 1,
                 engine: str = "verilator", name: str | None = None) -> Rate:
    """Return beats per cycle of the pooler for bags of ``lengths`` vectors, from the first beat
    offered to the last sum out.

    ``lengths``: vectors of each bag, at least 1; 26 bags make a sample. ``name``: of the
    build, by default derived from the configuration.
    """
    running = _model(config, name or f"pooler_{config.name}", engine).instance()
    running.set_signal("vector_beats", vector_beats)
    vectors = int(lengths.sum())
    ends = np.zeros(vectors, bool)
    ends[np.cumsum(lengths) - 1] = True
    bags = np.arange(len(lengths))
    sample = np.repeat(bags // _BAGS_OF_A_SAMPLE, lengths)
    closes = (bags % _BAGS_OF_A_SAMPLE == _BAGS_OF_A_SAMPLE - 1) | (bags == len(bags) - 1)
    beats = np.arange(vectors * vector_beats) // vector_beats
    slots = pack(
        SlotBeat, len(beats), sample=sample[beats],
        kind=np.where(ends, int(RecordKind.KEY_END), int(RecordKind.KEY))[beats],
        beat_last=np.arange(len(beats)) % vector_beats == vector_beats - 1,
        sample_last=(np.repeat(closes, lengths) & ends)[beats])
    values = np.random.default_rng(seed).standard_normal((len(beats), BEAT_BITS // 32))
    slots[:, :BEAT_BITS // 32] = values.astype(np.float32).view(np.uint32)
    start = settle(running)
    running.push("i", slots, start)
    wanted, got, last = len(lengths) * vector_beats, 0, start
    limit = start + 32 * len(beats) + 10_000
    while got < wanted:
        if running.cycle > limit:
            raise RuntimeError(f"{got} of {wanted} sums after {limit - start} cycles")
        running.run(running.cycle + 512)
        _, cycles = running.pop("o")
        got += len(cycles)
        last = int(cycles[-1]) if len(cycles) else last
    return Rate("pooling", len(beats), last + 1 - start)
