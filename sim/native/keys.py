"""Keys of samples, compiled: their query records, and those that other nodes own."""

import ctypes
from collections.abc import Sequence
from ctypes import c_bool, c_int64, c_uint32, c_uint64, c_void_p
from functools import cache, lru_cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from host.placement.shard import OWNER_BITS, ShardPlan, foreign_keys, hash_tables
from host.samples import KEY_ROW_BITS, Samples
from host.wire.layouts import field_bits
from host.wire.packets import query_records
from rtl.formats import DescriptorKind, QueryRecord, RecordKind, SampleRecord
from sim.engines.library import library

__all__ = ["foreign_keys_compiled", "query_records_compiled"]


class _Layout(ctypes.Structure):
    _fields_ = (*((name, c_uint32) for name in (
        "row", "row_bits", "table", "table_bits", "kind", "sample", "slots", "slots_bits",
        "head_kind")), *((name, c_uint64) for name in ("key", "key_end", "empty", "head")))


class _Plan(ctypes.Structure):
    _fields_ = (("kinds", c_void_p), ("owner", c_void_p), ("owners", c_void_p),
                ("tables", c_uint64), ("by_row", c_int64), ("everywhere", c_int64),
                ("hash", c_void_p), ("hash_bytes", c_uint32), ("owner_bits", c_uint32),
                ("row_bits", c_uint32))
    arrays: tuple


_FUNCTIONS = {
    "ember_query_records": (c_bool, [c_void_p, c_void_p, c_uint64, c_uint64, c_void_p, c_void_p,
                                     c_uint32, c_void_p]),
    "ember_foreign_keys": (c_int64, [c_void_p, c_void_p, c_void_p, c_void_p, c_uint64]),
}
_QUERY, _HEAD = field_bits(QueryRecord), field_bits(SampleRecord)
_LAYOUT = _Layout(*_QUERY["row"], *_QUERY["table"], _QUERY["kind"][0], _HEAD["sample"][0],
                  *_HEAD["slots"], _HEAD["kind"][0], RecordKind.KEY, RecordKind.KEY_END,
                  RecordKind.EMPTY, RecordKind.SAMPLE)


@cache
def _library() -> SimpleNamespace:
    return library(Path(__file__).with_suffix(".cpp"), _FUNCTIONS, long=_FUNCTIONS)


def _keys(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    return (np.ascontiguousarray(samples.tables, np.int64),
            np.ascontiguousarray(samples.rows, np.int64))


def query_records_compiled(samples: Samples, first_sample: int) -> np.ndarray:
    """Return what :func:`host.wire.packets.query_records` returns, and raise what it raises."""
    lengths = np.ascontiguousarray(samples.bag_lengths, np.int64)
    tables, rows = _keys(samples)
    records = np.empty(int(samples.slots.sum()) + len(samples), np.uint64)
    if not _library().ember_query_records(
            ctypes.byref(_LAYOUT), lengths.ctypes.data, *lengths.shape, tables.ctypes.data,
            rows.ctypes.data, first_sample & 0xFFFFFFFF, records.ctypes.data):
        return query_records(samples, first_sample)
    return records


@lru_cache(maxsize=4)
def _plan(plan: ShardPlan) -> _Plan:
    columns = [np.array([getattr(table, name) for table in plan.tables], np.int64)
               for name in ("kind", "owner", "owners")]
    hashes = np.ascontiguousarray(hash_tables(), np.uint32)
    placed = _Plan(*(column.ctypes.data for column in columns), len(plan.tables),
                   DescriptorKind.ROW, DescriptorKind.REPLICATED, hashes.ctypes.data, len(hashes),
                   OWNER_BITS, KEY_ROW_BITS)
    placed.arrays = columns, hashes  # they live as long as their addresses are used
    return placed


def foreign_keys_compiled(plan: ShardPlan, samples: Samples, shares: Sequence[int]) -> int:
    """Return what :func:`host.placement.shard.foreign_keys` returns, and raise what it raises."""
    tables, rows = _keys(samples)
    bounds = np.ascontiguousarray(samples.key_offsets[np.asarray(shares)], np.int64)
    found = _library().ember_foreign_keys(ctypes.byref(_plan(plan)), tables.ctypes.data,
                                          rows.ctypes.data, bounds.ctypes.data, len(bounds) - 1)
    return foreign_keys(plan, samples, shares) if found < 0 else found
