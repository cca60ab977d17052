"""What a modelled NIC is told: its sizes, registers and latencies."""

import ctypes
from collections.abc import Mapping
from ctypes import c_uint32, c_void_p

import numpy as np

from host.placement.shard import OWNER_BITS, ShardPlan, hash_tables
from rtl.cache.vectors import HITS_AHEAD
from rtl.config import NicConfig
from rtl.float import (
    COUNT_DIVIDER_LANE_LATENCY,
    DOT_LATENCY,
    DOT_TREE_LATENCY,
    FLOAT_ADDER_LATENCY,
    RECIPROCAL_LATENCY,
)
from rtl.formats import DescriptorKind, RecordKind
from rtl.interaction.pooling import BAGS, OUT_BEATS
from rtl.network import FrameAssembler, FrameParser
from rtl.nic import REQUEST_FIFO
from sim.bench.probe import stated
from sim.native.wire import wire_words

__all__ = ["PlanWords", "config_words", "latencies"]

_RING_BEATS = 4096
"""Beats that may wait to be added, the default of :class:`rtl.interaction.Pooler`."""
_DOT_ROOM = 64
"""Beats of dots that may wait, of :class:`rtl.interaction.DotInteraction`."""
_GROUP_TO_BEAT = 5
"""Cycles of a group of dots outside the dot units: their operands are read, the group is turned
twice (:class:`rtl.interaction.flatten.Flattener`, latency 4)."""


def latencies(config: NicConfig) -> dict[str, int]:
    """Return latencies in cycles, and depths, by member of the C++ ``Config``.

    Those that a docstring states are taken from it, and `python -m sim bench` measures them; those
    of float units are their constants. What is not here is in the C++, where each buffer, FIFO and
    register that a lookup meets is one.
    """
    first = stated(FrameParser, r"Latency (\d+) cycles from a packet's last beat to its first rec")
    assembled = stated(FrameAssembler, r"Latency (\d+) cycles from a packet's last payload beat")
    dots = DOT_LATENCY if config.vector_beats > 1 else DOT_TREE_LATENCY
    return {
        # Its header is read two cycles before the first record is out.
        "parser_header": first - 2,
        "adder": FLOAT_ADDER_LATENCY, "reciprocal": RECIPROCAL_LATENCY,
        "divider": COUNT_DIVIDER_LANE_LATENCY, "hits_ahead": HITS_AHEAD, "bags": BAGS,
        "pooled_beats": OUT_BEATS, "ring_beats": _RING_BEATS, "request_fifo": REQUEST_FIFO,
        # Buffers on both sides and three steps of a header, which wait for each other, are apart.
        "assembled": assembled - 5,
        "dot_first": _GROUP_TO_BEAT + dots, "dot_reuse": DOT_LATENCY - DOT_TREE_LATENCY + 2,
        "dot_room": _DOT_ROOM,
    }


_CONFIG = ("nodes", "query_beats", "sample_slots", "hold_vectors", "lookup_beats",
           "net_payload_beats", "host_payload_beats", "dense_vectors", "remote_ways",
           "remote_in_flight", "local_ways", "local_in_flight", "dedupe_ways",
           "dedupe_in_flight", "scatter_entries", "dot_units", "interaction_vectors", "wide")
_REGISTERS = ("node", "cluster", "vector_beats", "vector_packing", "mean", "interaction", "itself",
              "local_enable", "local_sets", "remote_enable", "remote_sets", "requester_merge",
              "dedupe_enable", "dedupe_sets", "request_batch", "request_timeout",
              "lookup_timeout", "vector_timeout", "result_timeout", "lookup_window")
_LATENCIES = ("parser_header", "adder", "reciprocal", "divider", "hits_ahead", "bags",
              "pooled_beats", "ring_beats", "request_fifo", "assembled", "dot_first", "dot_reuse",
              "dot_room")
_KINDS = (RecordKind.KEY, RecordKind.KEY_END, RecordKind.EMPTY, RecordKind.SAMPLE,
          DescriptorKind.ROW, DescriptorKind.REPLICATED, OWNER_BITS)


def config_words(config: NicConfig, registers: Mapping[str, int]) -> np.ndarray:
    """Return the C++ ``Config`` of a NIC whose registers were written so: uint32 words."""
    sizes = {name: getattr(config, name, 0) for name in _CONFIG} | {
        "remote_ways": config.remote_cache_ways, "local_ways": config.local_cache_ways,
        "local_in_flight": config.misses_in_flight, "wide": config.vector_beats > 1}
    beats = registers["vector_beats"]
    values = dict(registers) | {
        "cluster": registers["nodes"], "mean": registers["pooling_mean"],
        # Longer vectors have beats of their own.
        "vector_packing": registers["vector_packing"] if beats == 1 else 0,
        "interaction": registers["interaction_mode"],
        "itself": registers["interaction_itself"],
        "local_enable": registers["local_cache_enable"],
        "local_sets": registers["local_cache_sets"],
        "remote_enable": registers["remote_cache_enable"],
        "remote_sets": registers["remote_cache_sets"], "dedupe_sets": config.dedupe_sets}
    cycles = latencies(config)
    words = [*(sizes[name] for name in _CONFIG), *(values[name] for name in _REGISTERS),
             *(cycles[name] for name in _LATENCIES), *_KINDS]
    return np.concatenate((wire_words(), np.array(words, np.uint32)))


class PlanWords(ctypes.Structure):
    """The C++ ``Plan``: where the rows of each table are, and the hash of keys."""

    _fields_ = (("kinds", c_void_p), ("owner", c_void_p), ("owners", c_void_p),
                ("hash", c_void_p), ("hash_bytes", c_uint32))

    @classmethod
    def of(cls, plan: ShardPlan) -> "PlanWords":
        """Return that of ``plan``; its arrays live as long as it does."""
        columns = [np.array([getattr(table, name) for table in plan.tables], np.int64)
                   for name in ("kind", "owner", "owners")]
        hashes = np.ascontiguousarray(hash_tables(), np.uint32)
        placed = cls(*(column.ctypes.data for column in columns), hashes.ctypes.data, len(hashes))
        placed.arrays = columns, hashes
        return placed

    arrays: tuple
