"""Rows of embedding tables, compiled: pooled to bags, and packed as a GPU answers with them."""

import ctypes
from ctypes import byref, c_bool, c_char_p, c_uint16, c_uint32, c_uint64, c_void_p
from functools import cache, lru_cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from host.dlrm.dlrm import pooled_reference
from host.dlrm.rows import RowConstants, row_constants
from host.model import Model
from host.samples import Samples
from host.wire.layouts import field_bits
from host.wire.packets import header_beat, vectors_that_fit
from host.wire.rows import Answer, row_answers
from rtl.config import LANES
from rtl.formats import BEAT_BYTES, EMBER_OFFSET, TAGS_PER_BEAT, EmberHeader, LookupRecord, Opcode
from sim.engines.library import library

__all__ = ["pooled_compiled", "row_answers_compiled", "rows_of"]


class _Rows(ctypes.Structure):
    _fields_ = (("sizes", c_void_p), ("seeds", c_void_p), ("scales", c_void_p),
                ("steps", c_void_p), ("tables", c_uint64), ("dimension", c_uint64))
    constants: RowConstants


class _Wire(ctypes.Structure):
    _fields_ = tuple((name, c_uint32) for name in (
        "row_bits", "table_shift", "table_bits", "tag_shift", "beat_bytes", "tags_per_beat",
        "step_byte", "count_byte"))


_FUNCTIONS = {
    "ember_pooled": (c_bool, [c_void_p, c_void_p, c_void_p, c_void_p, c_uint64, c_bool, c_void_p]),
    "ember_row_packets": (c_bool, [c_void_p, c_void_p, c_char_p, c_uint16, c_void_p, c_uint64,
                                   c_uint64, c_void_p]),
}
_LOOKUP = field_bits(LookupRecord)
assert _LOOKUP["row"][0] == 0
assert EmberHeader.members["step"] == EmberHeader.members["count"] == 16
_WIRE = _Wire(_LOOKUP["row"][1], *_LOOKUP["table"], _LOOKUP["landing"][0], BEAT_BYTES,
              TAGS_PER_BEAT,
              *(EMBER_OFFSET + EmberHeader[name].offset // 8 for name in ("step", "count")))


@cache
def _library() -> SimpleNamespace:
    # A gather's rows are written sooner than Python's lock is given away and had back.
    return library(Path(__file__).with_suffix(".cpp"), _FUNCTIONS, long=("ember_pooled",))


@lru_cache(maxsize=16)
def _rows_of(sizes: tuple[int, ...], dimension: int, seed: int) -> _Rows:
    constants = row_constants(sizes, dimension, seed)
    rows = _Rows(*(array.ctypes.data for array in constants), len(sizes), dimension)
    rows.constants = constants  # they live as long as their addresses are used
    return rows


def rows_of(model: Model, seed: int) -> ctypes.Structure:
    """Return the C++ ``Rows`` of a model's tables, for other C++."""
    return _rows_of(model.rows, model.dimension, seed)


def pooled_compiled(samples: Samples, model: Model, seed: int) -> np.ndarray:
    """Return what :func:`host.dlrm.dlrm.pooled_reference` returns, and raise what it raises."""
    tables, rows, lengths = (np.ascontiguousarray(array, np.int64) for array in (
        samples.tables, samples.rows, samples.bag_lengths))
    constants = rows_of(model, seed)
    pooled = np.empty((len(samples), samples.table_count, model.dimension), np.float32)
    if not _library().ember_pooled(
            byref(constants), tables.ctypes.data, rows.ctypes.data, lengths.ctypes.data,
            lengths.size, model.pooling == "mean", pooled.ctypes.data):
        return pooled_reference(samples, model, seed)
    return pooled


def row_answers_compiled(model: Model, seed: int, node: int, payload_beats: int) -> Answer:
    """Return what makes the packets of :func:`host.wire.rows.row_answers`, and raises the same.

    It writes as many packets as there are in one go: they are parts of one array.
    """
    pack = _library().ember_row_packets
    rows = rows_of(model, seed)
    head = header_beat(Opcode.GPU_VECTORS, node=node, step=0, count=0).tobytes()
    most = vectors_that_fit(model.dimension, payload_beats)

    def beats(count: int) -> int:
        return 1 - -count // TAGS_PER_BEAT - -count * model.dimension // LANES

    whole = beats(most)

    def answer(records: np.ndarray, step: int) -> list[np.ndarray]:
        full, rest = divmod(len(records), most)
        packets = np.empty((full * whole + (beats(rest) if rest else 0), BEAT_BYTES // 4),
                           np.uint32)
        if not pack(byref(rows), byref(_WIRE), head, step & 0xFFFF, records.ctypes.data,
                    len(records), most, packets.ctypes.data):
            return row_answers(model, seed, node, payload_beats)(records, step)
        return [packets[first:first + whole] for first in range(0, len(packets), whole)]

    return answer
