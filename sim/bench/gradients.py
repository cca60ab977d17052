"""Rows of gradient reduction: beats per cycle of both reducers, for several key distributions, and
their resources, with exact sums and with sums in float32."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
from amaranth.hdl import Module

from gen.netlist.fit import SLR
from gen.netlist.report import report_resources
from gen.verilog.convert import to_verilog
from host.dlrm.bounds import sum_bounds
from host.dlrm.exact_keys import sums_by_key
from host.samples import Samples
from host.wire.layouts import field_bits, pack, unpack
from rtl.config import GRADIENT_SUMS, LANES, NicConfig, preset
from rtl.formats import ROW_BITS
from rtl.gradient import (
    Flushed,
    GradientReducer,
    RounderBank,
    gradient_beat_layout,
    reduced_beat_layout,
    sum_meta_layout,
)
from sim.bench.rate_paths import SideBySide
from sim.bench.rates import Rate, settle, trace
from sim.bench.rows import Job, Progress, Row
from sim.engines import Engine, Model, load

__all__ = ["LEVELS", "gradient_jobs", "gradient_rate", "on_one_key"]

LEVELS = ("global", "local")
"""The two reducers: the owner's rounds, the requester's sends sums as lists of terms."""

_CONFIGS = {sums: preset("kaggle").with_fields(gradient_sums=sums) for sums in GRADIENT_SUMS}
_MOST_LUTS = {"exact": 12.0, "float32": 6.0}
"""Limits of the LUTs of both reducers, in per cent of an SLR."""
_TARGET = 0.9
_QUANTUM = 64


class Reducers(SideBySide):
    """Both reducers of a NIC, with the rounder bank of exact sums; vectors of one beat."""

    def __init__(self, config: NicConfig, lanes: int = LANES):
        exact = config.gradient_sums == "exact"
        sizes = {"lanes": lanes, "units": 0, "gradient_sums": config.gradient_sums}
        super().__init__({
            "global": GradientReducer(config.global_gradient_keys, config.gradient_ways,
                                      split=False, style="uram", **sizes),
            "local": GradientReducer(config.local_gradient_keys, config.gradient_ways, split=True,
                                     **sizes)}, ("sums", "terms", "quiet"))
        self._bank = RounderBank(sum_meta_layout(1), lanes=lanes) if exact else None

    def elaborate(self, platform) -> Module:
        m = super().elaborate(platform)
        if self._bank is not None:
            m.submodules.bank = self._bank
            self._bank.join(m, (self.blocks["local"], self.blocks["global"]))
        return m


@lru_cache(maxsize=1)
def _model(config: NicConfig, lanes: int, engine: str) -> Model:
    return load(Reducers(config, lanes),
                f"reducers_{config.name}_{config.gradient_sums}_{lanes}", engine,
                recipe=f"reducers {lanes} {config!r}\n{inspect.getsource(Reducers)}")


def on_one_key(samples: Samples, share: float, seed: int = 1) -> Samples:
    """Return ``samples`` with a random ``share`` (about) of the keys replaced by one key."""
    hot = np.random.default_rng(seed).random(len(samples.rows)) < share
    return replace(samples, tables=np.where(hot, 0, samples.tables),
                   rows=np.where(hot, 0, samples.rows))


def gradient_rate(config: NicConfig, level: str, samples: Samples, *, lanes: int = LANES,
                  engine: str = "verilator", seed: int = 1) -> tuple[Rate, dict[str, int]]:
    """Return beats per cycle of a reducer, and its answer to the flush.

    Each key of ``samples`` has a gradient of one beat, all in one pass of one step; time counts
    from the first beat offered until the step is flushed and everything has left.

    ``RuntimeError`` if sums are wrong or the reduction does not end.
    """
    running = _model(config, lanes, engine).instance()
    keys = samples.tables.astype(np.int64) << ROW_BITS | samples.rows.astype(np.int64)
    values = np.random.default_rng(seed).standard_normal((len(keys), lanes)).astype(np.float32)
    layout = gradient_beat_layout(lanes)
    beats = pack(layout, len(keys), key__row=samples.rows, key__table=samples.tables)
    _put(beats, field_bits(layout)["data"][0], values.view(np.uint32))
    start = settle(running)
    running.push(f"{level}__i", beats, start)
    given: list[tuple[np.ndarray, np.ndarray]] = []
    limit, flushed = start + 8 * len(keys) + 100_000, False
    while True:
        running.run(running.cycle + _QUANTUM)
        given += _left(running, level, lanes)
        if not flushed and not running.waiting(f"{level}__i"):
            running.push(f"{level}__flush", np.zeros((1, 1), np.uint32), running.cycle)
            flushed = True
        answers, cycles = running.pop(f"{level}__flushed")
        if len(answers):
            break
        if running.cycle > limit:
            raise RuntimeError(f"{level} reduction of {len(keys)} beats did not end in "
                               f"{limit - start} cycles")
    # Beats passed on and beats from lists, summed by key, must equal the rounded sums, or be within
    # the rounding of float32 sums.
    found, sums = sums_by_key(*(np.concatenate(part) for part in zip(*given)))
    right, (low, high) = sum_bounds(keys, values)
    if config.gradient_sums == "exact":
        right, low = sums_by_key(keys, values)
        high = low
    if not (np.array_equal(found, right) and (low <= sums).all() and (sums <= high).all()):
        raise RuntimeError(f"{level} reduction of {len(keys)} beats gave wrong sums")
    answer = {name: int(unpack(Flushed, answers, name)[0]) for name in ("keys", "passed")}
    return Rate(f"{level} reduction", len(keys), int(cycles[0]) + 1 - start), answer


def _left(running: Engine, level: str, lanes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return keys and values of the beats that have left a reducer through either output."""
    found = []
    for port, layout in (("o", reduced_beat_layout(lanes)),
                         ("passed", gradient_beat_layout(lanes))):
        words, _ = running.pop(f"{level}__{port}")
        keys = unpack(layout, words, "key.table") << np.uint64(ROW_BITS) | unpack(
            layout, words, "key.row")
        values = _get(words, field_bits(layout)["data"][0], lanes)
        found.append((keys.astype(np.int64), values.view(np.float32)))
    return found


def _put(records: np.ndarray, offset: int, values: np.ndarray) -> None:
    """Write 32-bit ``values [n, lanes]`` into ``records [n, words]`` from bit ``offset`` on."""
    word, bit = divmod(offset, 32)
    end = word + values.shape[1]
    records[:, word:end] |= values << np.uint32(bit)
    if bit:
        records[:, word + 1:end + 1] |= values >> np.uint32(32 - bit)


def _get(records: np.ndarray, offset: int, lanes: int) -> np.ndarray:
    """Return the 32-bit values ``[n, lanes]`` of ``records`` that start at bit ``offset``."""
    word, bit = divmod(offset, 32)
    values = records[:, word:word + lanes] >> np.uint32(bit)
    if bit:
        values |= records[:, word + 1:word + 1 + lanes] << np.uint32(32 - bit)
    return np.ascontiguousarray(values)


def gradient_jobs() -> list[Job]:
    """Return the jobs of both reducers, and of their resources, for each kind of sums."""
    cases: list[tuple[str, Callable[[], Samples]]] = [
        ("power-law keys", trace),
        *((f"{share} % on one key", lambda share=share: on_one_key(trace(), share / 100))
          for share in (1, 50, 100))]

    def job(sums: str, level: str, what: str, keys: Callable[[], Samples]) -> Job:
        name = f"gradient reduction, {_label(level, sums)}, {what}"

        def rows(progress: Progress) -> list[Row]:
            rate, answer = gradient_rate(_CONFIGS[sums], level, keys())
            return [Row(
                name, rate.per_cycle, "beats/cycle", _TARGET,
                note=f"the trace as one step, its reading out too; {rate.items:,} beats in "
                     f"{rate.cycles:,} cycles: sums of {answer['keys']:,} keys, "
                     f"{answer['passed']:,} beats passed on")]
        return Job("gradients", name, rows)

    return [*(job(sums, level, *case) for sums in GRADIENT_SUMS for level in LEVELS
              for case in cases),
            *map(_luts, GRADIENT_SUMS)]


def _label(level: str, sums: str) -> str:
    return level if sums == "exact" else f"{level} in {sums}"


def _luts(sums: str) -> Job:
    """Return the job of the LUTs of both reducers."""
    name = f"gradient reduction, {_label('both', sums)}, LUT"

    def rows(progress: Progress) -> list[Row]:
        used = report_resources(to_verilog(Reducers(_CONFIGS[sums]), f"reducers_{sums}"),
                                progress)["total"]
        return [Row(name, 100 * used["lut"] / SLR["lut"], "% of one SLR", _MOST_LUTS[sums], "<=",
                    note=f"{used['lut']:,} of {SLR['lut']:,}; {used['bram36']:,.0f} BRAM36, "
                         f"{used['uram']} URAM, {used['dsp']} DSP, depth {used['depth']}")]
    return Job("gradients", name, rows)
