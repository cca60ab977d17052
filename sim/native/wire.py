"""Where fields lie in the beats between a NIC and its host, for C++."""

import numpy as np

from host.wire.layouts import field_bits
from host.wire.packets import field_place
from rtl.formats import (
    VERSION,
    DenseRecord,
    ErrorRecord,
    LookupRecord,
    Opcode,
    PooledTag,
    QueryRecord,
    ResultPartTag,
    SampleRecord,
)
from sim.nic.ports import BEAT_WORDS, KEEP_WORDS, LAST_BIT

__all__ = ["wire_words"]

_OPCODES = (Opcode.LOOKUPS, Opcode.VECTORS, Opcode.QUERIES, Opcode.GPU_VECTORS,
            Opcode.DENSE_VECTORS, Opcode.LOOKUP_REQUESTS, Opcode.POOLED, Opcode.CREDIT,
            Opcode.DENSE_REQUESTS, Opcode.RESULTS, Opcode.RESULT_PART, Opcode.ERRORS)
_HEADER = ("opcode", "source", "destination", "step", "credit", "count", "version")
_FIELDS = (*((LookupRecord, name) for name in ("row", "table", "landing")),
           *((QueryRecord, name) for name in ("row", "table", "kind")),
           (SampleRecord, "sample"), (SampleRecord, "slots"),
           (DenseRecord, "sample"), (DenseRecord, "landing"),
           (ErrorRecord, "sample"), (ErrorRecord, "status"),
           *((PooledTag, name) for name in ("sample", "first_bag", "last")),
           *((ResultPartTag, name) for name in ("sample", "first_beat", "last")))


def wire_words() -> np.ndarray:
    """Return the C++ ``Wire``: uint32 words."""
    fields = [field_place(name) for name in _HEADER]
    fields += [field_bits(layout)[name] for layout, name in _FIELDS]
    return np.array([*_OPCODES, *(number for field in fields for number in field),
                     VERSION, BEAT_WORDS, LAST_BIT, KEEP_WORDS.start, len(KEEP_WORDS)], np.uint32)
