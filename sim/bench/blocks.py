"""Rows of single blocks: lookups, vector path, packets, decoding, pooling."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from host.samples import Samples
from rtl.config import preset
from rtl.formats import ValueFormat
from sim.bench.decoding import decoding_rate
from sim.bench.packets import packet_rate, packet_size
from sim.bench.pooling import pooling_rate
from sim.bench.rates import (
    FILL_LATENCY,
    Rate,
    dedupe_rate,
    landing_path_rate,
    local_cache_rate,
    one_key,
    one_set,
    remote_cache_rate,
    store_path_frames,
    trace,
)
from sim.bench.rows import Job, Progress, Row

__all__ = ["block_jobs"]

_CONFIG = preset("kaggle")
_TARGET = 0.95
_LONGEST_BAG = 100


@lru_cache(maxsize=1)
def _trace() -> Samples:
    return trace()


def _row(name: str, unit: str, rate: Rate, note: str) -> Row:
    return Row(name, rate.per_cycle, unit, _TARGET,
               note=f"{note}; {rate.items:,} in {rate.cycles:,} cycles")


def block_jobs() -> list[Job]:
    """Return the jobs of all single blocks."""
    return [*_lookup_jobs(), *_vector_jobs(), *_packet_jobs(), *_decoding_jobs(),
            *_pooling_jobs()]


def _lookup_jobs() -> list[Job]:
    sets = _CONFIG.dedupe_sets
    cases: list[tuple[str, str, Callable[[], Rate]]] = [
        ("tag lookup, the trace", "caches cold",
         lambda: local_cache_rate(_CONFIG, _trace())),
        ("tag lookup, one key", "the same key all along",
         lambda: local_cache_rate(_CONFIG, one_key(_trace()))),
        ("tag lookup, one set", "the trace with one set in use",
         lambda: local_cache_rate(_CONFIG, _trace(), sets=1)),
        ("remote-cache lookup, the trace", "caches cold, merge on",
         lambda: remote_cache_rate(_CONFIG, _trace())),
        ("remote-cache lookup, one key", "the same key all along",
         lambda: remote_cache_rate(_CONFIG, one_key(_trace()))),
        ("remote-cache lookup, one set", "the trace with one set in use",
         lambda: remote_cache_rate(_CONFIG, _trace(), sets=1)),
        ("dedupe and scatter, the trace", "steps of 128 samples",
         lambda: dedupe_rate(_CONFIG, _trace())),
        ("dedupe and scatter, one key", "the same key all along, steps of 128 samples",
         lambda: dedupe_rate(_CONFIG, one_key(_trace()))),
        ("dedupe and scatter, one set", "the trace's keys as 4,096 of one set, one step",
         lambda: dedupe_rate(_CONFIG, one_set(_trace(), sets), mini_batch=len(_trace()))),
    ]

    def job(name: str, note: str, measure: Callable[[], Rate]) -> Job:
        def rows(progress: Progress) -> list[Row]:
            return [_row(name, "lookups/cycle", measure(),
                         f"{note}, vectors after {FILL_LATENCY} cycles")]
        return Job("lookups", name, rows)

    return [job(*case) for case in cases]


def _vector_jobs() -> list[Job]:
    def frames(requesters: int) -> Callable[[Progress], list[Row]]:
        def rows(progress: Progress) -> list[Row]:
            rate, _ = store_path_frames(_CONFIG, _trace(), requesters)
            return [_row(_vectors_name(requesters), "beats/cycle", rate,
                         "dedupe table, router, packager, assembler; header and tag beats too")]
        return rows

    def landing(progress: Progress) -> list[Row]:
        _, beats = store_path_frames(_CONFIG, _trace(), 1)
        rate = landing_path_rate(_CONFIG, beats, len(_trace().rows))
        return [_row("parser to hold buffer", "beats/cycle", rate,
                     "the frames of the store path, back to back")]

    return [Job("vectors", _vectors_name(1), frames(1)),
            Job("vectors", _vectors_name(4), frames(4)),
            Job("vectors", "parser to hold buffer", landing)]


def _vectors_name(requesters: int) -> str:
    return f"on-chip store to frames, {requesters} requester{'s' if requesters > 1 else ''}"


def _packet_jobs() -> list[Job]:
    def job(vectors: int) -> Job:
        name = f"packets out, p = {packet_size(vectors):,}"

        def rows(progress: Progress) -> list[Row]:
            rate = packet_rate(_CONFIG, vectors)
            free = packet_rate(_CONFIG, vectors, link=False)
            return [Row(
                name, rate.share, "of p/(p+66)", _TARGET,
                note=f"{vectors} vector{'s' if vectors > 1 else ''} a packet, {rate.goodput:.1f} "
                     f"of 100 Gb/s; {free.goodput:.1f} Gb/s with a sink that is always ready")]
        return Job("packets", name, rows)

    return [job(vectors) for vectors in (1, 16, 21)]


def _decoding_jobs() -> list[Job]:
    def job(form: str) -> Job:
        name = f"decoding at the requester, {form}"

        def rows(progress: Progress) -> list[Row]:
            return [_row(name, "beats/cycle", decoding_rate(_CONFIG, form),
                         "beats of float32; vectors of 16 values, back to back")]
        return Job("decoding", name, rows)

    return [job(form.name.lower()) for form in ValueFormat]


def _pooling_jobs() -> list[Job]:
    beats = 40_000

    def worst(progress: Progress) -> list[Row]:
        found = {}
        for length in range(1, _LONGEST_BAG + 1):
            found[length] = pooling_rate(_CONFIG, np.full(beats // length, length)).per_cycle
            if length % 20 == 0:
                progress(f"bags of {length} of {_LONGEST_BAG}")
        length = min(found, key=lambda n: found[n])
        return [Row("pooling, bags of one length", found[length], "beats/cycle", _TARGET,
                    note=f"the slowest of 1 to {_LONGEST_BAG} vectors a bag: {length}")]

    def mixed(progress: Progress) -> list[Row]:
        lengths = np.random.default_rng(1).integers(1, _LONGEST_BAG + 1, 4000)
        return [_row("pooling, bags of mixed lengths", "beats/cycle",
                     pooling_rate(_CONFIG, lengths),
                     f"1 to {_LONGEST_BAG} vectors, evenly distributed, 26 bags a sample")]

    return [Job("pooling", "pooling, bags of one length", worst),
            Job("pooling", "pooling, bags of mixed lengths", mixed)]
