"""Rows of the finder of duplicate keys, in slots per cycle: the block alone, on the trace."""

from collections.abc import Callable

import numpy as np

from host.samples import Samples
from host.wire.layouts import pack, unpack
from rtl.config import ROW_BITS, NicConfig, preset
from rtl.delivery import SlotIndex, UniqueFinder
from rtl.formats import RecordKind
from rtl.query.checker import Slot
from sim.bench.rates import Rate, one_key, one_set, settle, trace
from sim.bench.rows import Job, Progress, Row
from sim.engines import load

__all__ = ["unique_jobs", "unique_rate"]

_TARGET = 0.95
_QUANTUM = 512


def unique_rate(config: NicConfig, samples: Samples, engine: str = "verilator",
                share: int = 128) -> tuple[Rate, int, int]:
    """Return slots per cycle of the finder, the keys it sent, and how many of them it sent again.

    Each key is a slot. ``share``: samples of a step. ``RuntimeError`` if an index does not match
    its key, or the step does not end.
    """
    running = load(UniqueFinder(config), f"unique_{config.name}", engine,
                   recipe=f"UniqueFinder({config!r})").instance()
    running.set_signal("enable", 1)
    count = len(samples.rows)
    sample = np.repeat(np.arange(len(samples)), np.diff(samples.key_offsets))
    last = np.zeros(count, np.int64)
    last[samples.key_offsets[1:] - 1] = 1
    slots = pack(Slot, count, key__row=samples.rows, key__table=samples.tables, sample=sample,
                 step=sample // share, kind=int(RecordKind.KEY_END), last=last)
    start = settle(running)
    running.push("i", slots, start)
    sent: list[np.ndarray] = []
    told: list[np.ndarray] = []
    got = end = 0
    while got < count:
        if running.cycle > start + 8 * count + 100_000:
            raise RuntimeError(f"{got} of {count} indices in {running.cycle - start} cycles")
        running.run(running.cycle + _QUANTUM)
        sent.append(running.pop("o")[0])
        indices, cycles = running.pop("indices")
        told.append(indices)
        got += len(indices)
        end = int(cycles[-1]) if len(cycles) else end
    keys = np.concatenate(sent)
    different = _check(samples, sample // share, keys, np.concatenate(told))
    return Rate("unique", count, end + 1 - start), len(keys), len(keys) - different


def _check(samples: Samples, steps: np.ndarray, sent: np.ndarray, told: np.ndarray) -> int:
    """Return the different keys of each step, summed over the steps.

    ``RuntimeError`` unless each slot's index names its key among those sent.
    """
    table, row, step = (unpack(Slot, sent, name).astype(np.int64) for name in (
        "key.table", "key.row", "step"))
    base = np.searchsorted(step, steps)
    place = base + unpack(SlotIndex, told, "index").astype(np.int64)
    if (place >= len(sent)).any() or ((table << ROW_BITS | row)[place] != samples.keys).any():
        raise RuntimeError("an index is not that of its key")
    return len(np.unique(np.stack((steps, samples.keys)), axis=1).T)


def unique_jobs() -> list[Job]:
    """Return the jobs of the finder: the trace, one key, one set."""
    config = preset("kaggle")
    sets = config.unique_keys // config.unique_ways
    cases: list[tuple[str, str, Callable[[], tuple[Rate, int, int]]]] = [
        ("repeats in a step, the trace", "steps of 128 samples",
         lambda: unique_rate(config, trace())),
        ("repeats in a step, shares of 512", "the trace in steps of 512 samples",
         lambda: unique_rate(config, trace(), share=512)),
        ("repeats in a step, one key", "the same key all along, steps of 128 samples",
         lambda: unique_rate(config, one_key(trace()))),
        ("repeats in a step, one set", "the trace's keys as 4,096 of one set, steps of 128 samples",
         lambda: unique_rate(config, one_set(trace(), sets)))]

    def job(name: str, note: str, measure: Callable[[], tuple[Rate, int, int]]) -> Job:
        def rows(progress: Progress) -> list[Row]:
            rate, sent, again = measure()
            return [Row(name, rate.per_cycle, "slots/cycle", _TARGET, note=(
                f"{note}; {rate.items:,} in {rate.cycles:,} cycles, {sent:,} sent, "
                f"{again:,} of them again"))]
        return Job("unique", name, rows)

    return [job(*case) for case in cases]
