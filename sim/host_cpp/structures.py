"""Structures shared by Python and C++, defined here once; `definition` writes the C++."""

import ctypes
from ctypes import c_bool, c_double, c_int64, c_uint32, c_uint64, c_void_p
from typing import ClassVar

__all__ = ["Asked", "CountPort", "EnginePort", "Exchanged", "FrameRule", "GpuTimes", "HostConfig",
           "HostCounts", "Link", "Plan", "RingPlace", "RowReadsAt", "Rows", "Share", "Shared",
           "definition", "fields"]

_TYPES = {c_bool: "bool", c_double: "double", c_int64: "int64_t", c_uint32: "uint32_t",
          c_uint64: "uint64_t", c_void_p: "void*"}


def fields(kind: type, *names: str) -> tuple[tuple[str, type], ...]:
    """Return ``names``, each as a field of type ``kind``."""
    return tuple((name, kind) for name in names)


class Shared(ctypes.Structure):
    """A structure with the same name in C++. ``pointers``: C++ types of its pointers."""

    pointers: ClassVar[dict[str, str]] = {}


def definition(structure: type[Shared]) -> str:
    """Return the C++ definition of ``structure``. Static assertions check that every field has its
    offset and size of Python."""
    name, lines, checks = structure.__name__, [], []
    for field, kind, *_ in structure._fields_:
        known = structure.pointers.get(field) or _TYPES.get(kind) or kind.__name__
        lines.append(f"    {known} {field};")
        place = getattr(structure, field)
        checks.append(f"static_assert(offsetof({name}, {field}) == {place.offset} && "
                      f"sizeof({name}::{field}) == {place.size});")
    checks.append(f"static_assert(sizeof({name}) == {ctypes.sizeof(structure)});")
    return "\n".join([f"struct {name} {{", *lines, "};", *checks]) + "\n"


class Plan(Shared):
    """Placement of each table's rows.

    Members: ``beats`` of a bag's vector; the key hash tables, ``[bytes of a key][256]``; ``bases``,
        addresses of tables in GPU memory.
    """

    _fields_ = (*fields(c_void_p, "kinds", "owner", "owners", "beats", "hash", "bases"),
                *fields(c_uint64, "tables", "hash_bytes"))
    pointers = {**dict.fromkeys(("kinds", "owner", "owners", "beats"), "const int64_t*"),
                "hash": "const uint32_t*", "bases": "const uint64_t*"}


class Rows(Shared):
    """The rows of embedding tables: the constants from which they are made, or ``given`` rows.

    Members
    -------
    sizes: rows of each table.
    given: address of the first value of each given table.
    lengths: values of a row; a vector is filled up with +0.
    pairs: pairs of values before the first value of a row. firsts: rows before the first row.
    strides: values from a row to the next, and from a value to the next in its row.
    """

    _fields_ = (*fields(c_void_p, "sizes", "seeds", "scales", "steps"),
                *fields(c_uint64, "tables", "dimension"),
                *fields(c_void_p, "given", "lengths", "strides", "pairs", "firsts"))
    pointers = {"sizes": "const int64_t*", "seeds": "const uint64_t*", "scales": "const double*",
                "steps": "const uint64_t*", "given": "const float* const*",
                "lengths": "const int64_t*", "strides": "const int64_t*",
                "pairs": "const int64_t*", "firsts": "const int64_t*"}


class GpuTimes(Shared):
    """Durations of work on the GPU, in cycles, and the number of gathers that run at once.

    ``launch``: of gathers of rows; ``other_launch``: of other kernels. ``call``: from a launch of
    the thread to its next one. ``row_bytes``: of a vector.
    ``stream_bytes``: sequential bytes that GPU memory moves in a cycle.
    """

    _fields_ = (*fields(c_double, "launch", "kernel", "cycles_per_row", "other_launch",
                        "cycles_per_sample", "call", "stream_bytes"),
                *fields(c_uint64, "streams", "row_bytes"))


class RingPlace(Shared):
    """A ring in GPU memory, see :class:`sim.job.rings.Ring`; ``slots`` is 0 without a ring."""

    _fields_ = fields(c_uint64, "base", "slots", "slot_bytes", "index")


class RowReadsAt(Shared):
    """Rows that a NIC reads.

    Members: ``numbers`` of its tables; ``starts`` of each in bytes from ``base``, up to ``end``;
        ``tables``, 0 if the NIC reads no rows; of a row: its bytes, its reads, and the bytes of
        reads and completions on PCIe; ``tags``, the number of reads in flight.
    """

    _fields_ = (*fields(c_void_p, "numbers", "starts"),
                *fields(c_uint64, "tables", "base", "end", "row_bytes", "reads", "request_bytes",
                        "answer_bytes", "tags"))
    pointers = {"numbers": "const uint64_t*", "starts": "const uint64_t*"}


class HostConfig(Shared):
    """Configuration of a host.

    Members
    -------
    unique: the NIC sends each distinct vector of a share once, and the host pools, as ``mean`` or
        sum.
    completion_slots: slots of the ring of completions, 0 without completions.
    completion_base: address of the ring.
    lists, vectors: rings of request lists and of vectors.
    row_reads: rows that the NIC reads instead of using the rings.
    cycles_per_byte: of PCIe towards the NIC.
    values, values_fit: float32 values of a dense vector, and dense vectors of a packet.
    rows: null if vectors, and therefore answers, have no values.
    beats: of a bag's vector of each table.
    held, tables: rows of each table whose bags this node's GPU pools, 0 for other tables, and the
        number of tables; null without tables that pool at their owner.
    owner_bags: bags of other nodes that may wait for the GPU.
    own_mean: the GPU pools a node's own bags as means, not sums.
    own_timed: the kernel of own bags takes time.
    """

    _fields_ = (*fields(c_uint64, "node", "dimension", "values", "values_fit", "payload_beats",
                        "buffer_beats", "in_flight", "vectors_fit", "latency", "interaction",
                        "unique", "mean",
                        "completion_slots", "completion_base", "tables", "owner_bags",
                        "own_mean", "own_timed"),
                ("cycles_per_byte", c_double), *fields(c_void_p, "rows", "held", "beats"),
                ("gpu", GpuTimes), ("lists", RingPlace), ("vectors", RingPlace),
                ("row_reads", RowReadsAt))
    pointers = {"rows": "const Rows*", "held": "const int64_t*", "beats": "const int64_t*"}


class Asked(Shared):
    """A share of a mini-batch to query, and the arrays for its answers.

    Members
    -------
    records, count: query records, and their number.
    first, samples: number of the mini-batch's first sample, and its number of samples.
    share_first, share: index of this node's first sample, and its number of samples.
    parts, values: parts of an answer, and values of a part, 0 if the NIC has no values.
    sent_parts: parts of an answer that the NIC sends; `places` has the place of each, null for all.
    own_bags, own_keys: own bags of owner-pooled tables, and their keys; `own_parts` of each answer.
    own_tables, own_lengths, own_rows, own_places: table, keys and part of the share's answers of
        each of these bags, and the row of each key; null without values.
    answers: [samples][parts][values].
    filled, status: per sample, the parts received and the error.
    left: unanswered samples of the share.
    dense: [samples][dimension], null without values.
    """

    _fields_ = (*fields(c_uint64, "step", "count"), ("records", c_void_p), ("time", c_double),
                *fields(c_uint32, "first", "samples", "share_first", "share"),
                *fields(c_uint64, "parts", "values", "sent_parts", "own_parts", "own_bags",
                        "own_keys"),
                *fields(c_void_p, "answers", "filled", "status", "left", "dense", "places",
                        "own_tables", "own_lengths", "own_rows", "own_places"))
    pointers = {"records": "const uint64_t*", "answers": "float*", "filled": "int64_t*",
                "status": "int64_t*", "left": "int64_t*", "dense": "const float*",
                **dict.fromkeys(("places", "own_tables", "own_lengths", "own_rows", "own_places"),
                                "const int64_t*")}


class Share(Shared):
    """An answered share of a mini-batch."""

    _fields_ = (("step", c_uint64), *fields(c_double, "started", "finished"))


class HostCounts(Shared):
    """Counts of a host and its GPU.

    ``fault``, ``value``: see :mod:`sim.host_cpp.host`. ``progress``: see
    :class:`sim.node.protocol.ClusterNode`.
    """

    _fields_ = (*fields(c_uint64, "to_nic", "from_nic", "launches", "rows", "dense_rows",
                        "bag_launches", "bag_lists", "foreign_bags", "own_bags", "bag_keys",
                        "unanswered", "queries_waiting", "nic_ns", "host_ns", "fault",
                        "value"), ("progress", c_double))


class EnginePort(Shared):
    """An output and an input of an engine, and the engine's functions."""

    _fields_ = (("engine", c_void_p), *fields(c_uint32, "from_", "to"),
                *fields(c_void_p, "run", "cycle", "next_event", "pop", "push"))
    pointers = {"run": "Run*", "cycle": "Ask*", "next_event": "Ask*", "pop": "Pop*",
                "push": "Push*"}


class CountPort(Shared):
    """The register accesses of an engine, and the addresses of the counts that a GPU stores."""

    _fields_ = (("access", c_void_p), *fields(c_uint32, "lists_consumed", "vectors_produced"))
    pointers = {"access": "Access*"}


class Link(Shared):
    """The links of a network.

    Members: ``free``, the cycle from which each queue is free, ``[source, or 0 with a
        switch][destination]``; ``queue``, the cycles in which a full queue empties.
    """

    _fields_ = (*fields(c_uint64, "overhead", "switched"),
                *fields(c_double, "lookahead", "cycles_per_byte", "queue"), ("free", c_void_p))
    pointers = {"free": "double*"}


class FrameRule(Shared):
    """A fault of frames, see :class:`sim.job.frame_faults.FrameRule`. ``frames``: first and last
    numbers of ``spans`` spans."""

    _fields_ = (*fields(c_uint64, "kind", "source", "destination", "opcode", "threshold", "cycles",
                        "first", "end", "spans"), ("frames", c_void_p))
    pointers = {"frames": "const uint64_t*"}


class Exchanged(Shared):
    """Result of an exchange's step, and the beat that would arrive late, if any.

    ``full``: frames that a full queue dropped. ``released``: frames forwarded after faults were
    applied. ``next``: cycle in which the next late frame is forwarded,
    :data:`sim.job.frame_faults.FOREVER` if no frame waits.
    """

    _fields_ = fields(c_uint64, "frames", "bytes", "lost", "full", "released", "next", "late_node",
                      "late_cycle")
    frames: int
    bytes: int
    lost: int
    full: int
    released: int
    next: int
    late_node: int
    late_cycle: int
