"""All records on blocks, buses and the wire. Host code packs with the same layouts.

Layouts are least significant bit first: byte ``i`` of a beat is bits ``8i`` to ``8i+7``. EmberNIC's
own fields (header, records, tags, floats) are therefore little-endian. Ethernet, IPv4 and UDP
fields are in network order, as in RFC 894, RFC 791 and RFC 768.

A packet is one header beat and ``n`` whole payload beats::

    bytes  0..13  Ethernet II   } zero if a shell has its own UDP stack; on host ports zero,
    bytes 14..33  IPv4          } except for an address in GPU memory in bytes 0..7 of some
    bytes 34..41  UDP           } packets to the host
    bytes 42..63  EmberNIC header

The CRC-32C (Castagnoli, RFC 3720 B.4) of a network packet covers its beats in order. Every byte of
the header beat counts as zero, except the two IP addresses and the EmberNIC header without its CRC
field. On host ports, where PCIe has its own check, the field is zero.
"""

from enum import IntEnum

from amaranth.hdl import unsigned
from amaranth.lib import data

from rtl.config import BEAT_BITS, ROW_BITS, TABLE_BITS

__all__ = [
    "BEAT_BYTES", "BEAT_INDEX_BITS", "COLUMN_BITS", "CREDIT_BITS", "EMBER_OFFSET", "EMPTY_INDEX",
    "END_SAMPLE", "ETHERTYPE_IPV4", "INDEX_BITS", "INDICES_PER_BEAT", "IP_PROTOCOL_UDP",
    "LANDING_BITS", "NODE_BITS", "NO_INDEX", "NO_SAMPLE", "OFFSET_BITS", "READ_UNIT",
    "RECORDS_PER_BEAT", "RECORD_BITS", "ROW_BITS", "SAMPLES_PER_BEAT", "SAMPLE_BITS",
    "SEQUENCE_BITS", "STEP_BITS",
    "TABLE_BITS", "TAGS_PER_BEAT", "TAG_BITS", "VERSION", "BagHead", "Beat", "CompletionRecord",
    "DenseRecord", "DenseSlot", "DescriptorKind", "EmberHeader", "ErrorRecord", "FlushRecord",
    "FrameInfo",
    "GradientBeat", "GradientHead", "GradientRecord", "HeaderBeat", "HoldSlot", "HostFrame",
    "HostHeaderBeat",
    "IndexRecord", "IndexTag", "InteractionMode", "Key", "LookupRecord", "Opcode", "OptimizerMode",
    "OutgoingPartial", "OutgoingRecord", "PartialRecord", "PeerBeat", "PoolPlace", "PooledTag",
    "QueryBag", "QueryRecord",
    "RawBeat", "ReadRecord", "RecordBeat", "RecordKind", "ReductionLevel", "Refused", "Request",
    "ResultPartTag", "RowReadRecord", "SampleRecord", "ScatterTag", "SizedBeat", "StateRecord",
    "Status",
    "StepKind", "StepOpenRecord", "StepRecord", "TableDescriptor", "TaggedBeat", "ValueFormat",
    "VectorBeat", "hold_slot", "repeat_fields", "words_of",
]

VERSION = 1
BEAT_BYTES = BEAT_BITS // 8
EMBER_OFFSET = 42
"""Byte of the header beat at which the EmberNIC header begins."""
ETHERTYPE_IPV4 = 0x0800
IP_PROTOCOL_UDP = 17

LANDING_BITS = 16
NODE_BITS, STEP_BITS, CREDIT_BITS, COLUMN_BITS = 8, 16, 16, 8
SEQUENCE_BITS = 24
BEAT_INDEX_BITS = 4
"""Bits of a beat's number in its vector, which has at most 16 beats."""
RECORD_BITS = 64
RECORDS_PER_BEAT = BEAT_BITS // RECORD_BITS
TAG_BITS = 16
TAGS_PER_BEAT = BEAT_BITS // TAG_BITS
SAMPLE_BITS = 32
SAMPLES_PER_BEAT = BEAT_BITS // SAMPLE_BITS
"""Sample numbers in a tag beat of a RESULTS packet."""
INDEX_BITS = 16
INDICES_PER_BEAT = BEAT_BITS // INDEX_BITS
"""Indices in a beat of an INDICES packet."""
OFFSET_BITS, READ_UNIT = 40, 16
"""Bits of the offset of a row in GPU memory, and bytes of its unit."""
EMPTY_INDEX, NO_INDEX = 0xFFFF, 0xFFFE
"""Indices without a vector: of an EMPTY slot; of a key that appeared first after all indices were
used."""
NO_SAMPLE, END_SAMPLE = 0xFFFFFFFF, 0xFFFFFFFE
"""Sample numbers without a sample: in an error; in the end of a share."""


class Opcode(IntEnum):
    """Content of a packet. Below 0x10 between NICs, 0x10 host to NIC, 0x20 NIC to host."""

    LOOKUPS = 0x01
    VECTORS = 0x02
    PARTIALS = 0x03
    STEPS = 0x04
    LINK = 0x05
    PROBE = 0x06
    BAGS = 0x07
    BAG_VECTORS = 0x08
    QUERIES = 0x10
    GPU_VECTORS = 0x11
    DENSE_VECTORS = 0x12
    GRADIENTS = 0x13
    RETURNED = 0x14
    STATES = 0x15
    WRITTEN = 0x16
    STEP_OPEN = 0x17
    FLUSHED = 0x18
    READ_DATA = 0x19
    GPU_BAGS = 0x1A
    BAG_GRADIENTS = 0x1B
    LOOKUP_REQUESTS = 0x20
    POOLED = 0x21
    ERRORS = 0x22
    CREDIT = 0x23
    DENSE_REQUESTS = 0x24
    RESULTS = 0x25
    RESULT_PART = 0x26
    SPILLED = 0x27
    ROW_UPDATES = 0x28
    STATE_REQUESTS = 0x29
    STATE_UPDATES = 0x2A
    STEP_REPORTS = 0x2B
    INDICES = 0x2C
    FLUSH = 0x2D
    COMPLETION = 0x2E
    READ = 0x2F
    INDEX = 0x30
    READ_ROWS = 0x31
    BAG_LISTS = 0x32


class InteractionMode(IntEnum):
    """Processing of a sample's pooled vectors, register ``interaction_mode``."""

    OFF = 0
    """The vectors go to the host unchanged."""
    DOT = 1
    """The dense vector, and the dot products of all pairs of it and the pooled vectors."""
    CAT = 2
    """The dense vector, followed by the pooled vectors."""


class ValueFormat(IntEnum):
    """Format of the values of vectors that the NIC pools, register ``value_format``."""

    FLOAT32 = 0
    FLOAT16 = 1
    BFLOAT16 = 2
    INT8 = 3
    INT8_ROW = 4


class OptimizerMode(IntEnum):
    """Update of rows by the sums of their gradients."""

    SGD = 0
    """Subtract the learning rate times the gradient from the row."""
    ROWWISE_ADAGRAD = 1
    """The step of a row shrinks with the sum of squares of all its gradients."""


class StepKind(IntEnum):
    """Content of a :data:`StepRecord`; the header has the number of its step."""

    END = 0
    """To an owner: this node has sent ``count`` partials and gradients of bags of the step, and no
    more follow. To the host, with register ``gpu_updates``: lists contain ``count`` gradients of
    bags of the step, of all other nodes, and no more follow."""
    DONE = 1
    """To every node: all rows of the step at this owner are written. To the host: the rows at every
    owner are written."""
    CREDIT = 2
    """To a node: only the credit in the header matters. If ``level`` is 1, ``count`` is the credit
    of bags."""
    PASSED = 3
    """To the host: a pass of reduction ``level`` is over; it spilled ``count`` beats."""


class ReductionLevel(IntEnum):
    """The two gradient reductions of a NIC."""

    LOCAL = 0
    """Gradients of this node's samples, for rows of any owner (paper, 4.2.1)."""
    GLOBAL = 1
    """Sums from all nodes, for the rows of this node (paper, 4.2.2)."""


class RecordKind(IntEnum):
    """Kind of a query record."""

    KEY = 0
    """A key before the last of its bag."""
    KEY_END = 1
    """The last key of its bag."""
    EMPTY = 2
    """An empty bag; it uses a slot, and pools to +0. Alone in a packet of gradients: the step's
    gradients end."""
    SAMPLE = 3
    """Head of a sample, see :data:`SampleRecord`."""


class Status(IntEnum):
    """Reason for the rejection of a message or a sample."""

    OPCODE = 1
    LENGTH = 2
    TABLE = 3
    ROW = 4
    SAMPLE_SIZE = 5
    TRUNCATED = 6
    NO_SAMPLE = 7
    CREDIT = 8
    KIND = 9
    STEP = 10
    RETURNED = 11
    """A beat that the host returned names an unknown row or beat; no sum includes it."""
    TIMEOUT = 12
    """In a completion: results of the step were missing at its timeout."""
    PEER = 13
    """A node did not acknowledge a packet of the step after all tries."""


class DescriptorKind(IntEnum):
    """Distribution of the rows of a table over nodes."""

    TABLE = 0
    """All rows at ``owner``."""
    ROW = 1
    """Rows hashed over ``owners`` nodes, starting with ``owner``."""
    COLUMN = 2
    """Columns split over nodes; defined in the format, but not supported."""
    REPLICATED = 3
    """A copy at every node."""


class PoolPlace(IntEnum):
    """Node that adds the vectors of a table's bags."""

    REQUESTER = 0
    """The node of the sample: rows travel."""
    OWNER = 1
    """The node of the rows: a vector for each bag travels."""


Beat = data.StructLayout({"data": BEAT_BITS, "keep": BEAT_BITS // 8, "last": 1, "err": 1})
"""A beat of a packet at an edge of the NIC; ``err`` is the MAC's verdict, valid with ``last``."""

RawBeat = data.StructLayout({"data": BEAT_BITS, "last": 1})
"""A beat of a packet inside the NIC, where packets are whole beats."""

EmberHeader = data.StructLayout({
    "version": 8, "opcode": 8, "source": NODE_BITS, "destination": NODE_BITS, "epoch": 8,
    "final_beat": 8, "step": STEP_BITS, "sequence": SEQUENCE_BITS, "acknowledge": SEQUENCE_BITS,
    "credit": CREDIT_BITS, "count": 16, "crc": 32,
})
"""The EmberNIC header, 22 bytes. ``final_beat``, in BAG_VECTORS and GPU_BAGS: number of the last
beat of each vector, from 0."""

HeaderBeat = data.StructLayout({
    "mac_destination": 48, "mac_source": 48, "ethertype": 16,
    "ip_version_ihl": 8, "ip_tos": 8, "ip_length": 16, "ip_id": 16, "ip_fragment": 16,
    "ip_ttl": 8, "ip_protocol": 8, "ip_checksum": 16, "ip_source": 32, "ip_destination": 32,
    "udp_source": 16, "udp_destination": 16, "udp_length": 16, "udp_checksum": 16,
    "ember": EmberHeader,
})
"""The first beat of a packet. Ethernet, IPv4 and UDP fields contain their bytes in wire order."""

HostHeaderBeat = data.StructLayout({"address": 64, "reserved": 272, "ember": EmberHeader})
"""The first beat of a packet to GPU memory, see :data:`HostFrame`; address 0 in other packets."""

Key = data.StructLayout({"row": ROW_BITS, "table": TABLE_BITS})
"""A row of a table."""

LookupRecord = data.StructLayout({"row": ROW_BITS, "table": TABLE_BITS, "landing": LANDING_BITS})
"""A key and the place reserved for its vector: a hold-buffer slot; for the GPU a miss id; for a
peer a miss id and its lap (:class:`rtl.cache.answer_check.AnswerCheck`)."""

DenseRecord = data.StructLayout({"sample": SAMPLE_BITS, "landing": LANDING_BITS, "reserved": 16})
"""A sample whose dense vector is requested, and the place reserved for it, which the answer returns
as its tag."""

QueryRecord = data.StructLayout(
    {"row": ROW_BITS, "table": TABLE_BITS, "kind": 2, "bag": 1, "reserved": 13})
"""A slot of a sample; ``kind`` is a :class:`RecordKind`. A KEY_END with ``bag`` is a
:data:`QueryBag`."""

_BAG = {"keys": 16, "wide": 1, "weighted": 1, "part": 8, "more": 1, "reserved0": 9}

BagHead = data.StructLayout(_BAG | {"table": TABLE_BITS, "landing": LANDING_BITS})
"""Head of a bag that pools at its owner. ``keys`` rows follow in slot order, two per word of 64
bits, or one if ``wide``. If ``weighted``, as many weights follow, binary32, two per word
(:func:`words_of`). ``landing``: the bag's id and lap; for the GPU a place of the owner. ``part``
and ``more`` are 0."""

GradientHead = data.StructLayout({
    "keys": 16, "wide": 1, "weighted": 1, "part": 8, "more": 1, "gradient": 1, "source": NODE_BITS,
    "table": TABLE_BITS, "landing": LANDING_BITS})
"""A :data:`BagHead` of a bag with its gradient: ``gradient`` is 1. The rows follow, then the
gradient, two float32 per word. ``landing``: number of the bag's sample in the share of its node.
``source``, in lists to the host: the node."""

QueryBag = data.StructLayout(_BAG | {"table": TABLE_BITS, "kind": 2, "bag": 1, "reserved1": 13})
"""The same as a slot of a sample: ``kind`` is KEY_END, ``bag`` is 1."""

GradientRecord = data.StructLayout(
    {"row": ROW_BITS, "table": TABLE_BITS, "kind": 2, "reserved": 14})
"""A key of a bag whose gradient follows; ``kind`` is KEY or KEY_END. A GRADIENTS packet contains
the records of whole bags, eight per beat, then a vector per bag, packed as in GPU_VECTORS packets.
"""

PartialRecord = data.StructLayout(
    {"row": ROW_BITS, "table": TABLE_BITS, "beat": BEAT_INDEX_BITS, "level": 1, "reserved": 11})
"""The key of a beat, and the number of the beat in its vector: in PARTIALS, SPILLED, RETURNED and
ROW_UPDATES. The packet contains its records, eight per beat, then as many beats of values, packed
as in VECTORS packets. ``level``, where it matters, is a :class:`ReductionLevel`, the same in the
whole packet."""

StepRecord = data.StructLayout({"count": 32, "kind": 2, "level": 1, "reserved": 29})
"""Progress of a step; ``kind`` is a :class:`StepKind`. WRITTEN, from the host, uses this record
too: ``count`` is the number of row beats and states written so far, and of answered ENDs, modulo
2^32. An END is answered when the rows that the GPU updates in its step are written."""

StateRecord = data.StructLayout({"state": 32, "landing": LANDING_BITS, "reserved": 16})
"""The optimizer state of a row, binary32, and the landing of its request."""

StepOpenRecord = data.StructLayout({"samples": 32, "step": STEP_BITS, "freed": 16})
"""Opens a step: the NIC will answer ``samples`` samples of it, at most 2^24; with delivery
``unique`` the end of the share counts as one. ``freed``: slots of the ring of completions that the
host has returned so far, modulo 2^16."""

CompletionRecord = data.StructLayout(
    {"status": 8, "step": STEP_BITS, "lap": 8, "slot": 16, "reserved": 16})
"""The word of a completed step, and its slot of the ring. The word is the lower half of the record.
After the completion, the word minus ``lap << 24 | step << 8`` is at least 0, as a signed difference
of 32 bits; before, it is negative, because the old word has the previous lap. The first lap is 1,
in a ring of zeros."""

FlushRecord = data.StructLayout({"slot": 16, "tag": 16, "reserved": 32})
"""Requests that all earlier writes are in GPU memory; FLUSHED returns the record when they are."""

IndexRecord = data.StructLayout({"index": 16, "reserved": 48})
"""Number of slots of a ring that were filled or emptied so far, modulo 2^16; a word, the lower
half."""

ReadRecord = data.StructLayout({"bytes": 32, "tag": 16, "reserved": 16})
"""Requests ``bytes`` bytes of GPU memory from the packet's address on. READ_DATA has the tag in its
header."""

RowReadRecord = data.StructLayout({"offset": OFFSET_BITS, "units": 8, "tag": 16})
"""Requests a row, which GPU_VECTORS returns with the same tag: ``units`` of 16 bytes of GPU memory,
16 * ``offset`` bytes after the packet's address."""

SampleRecord = data.StructLayout(
    {"sample": 32, "slots": 16, "kind": 2, "ends": 1, "reserved": 13})
"""Head of a sample: its number and the number of slot records that follow. ``kind`` = SAMPLE. With
delivery ``unique``, a record with ``ends`` is no sample: its one slot, EMPTY, ends the share of the
step. Its number may be END_SAMPLE."""

ErrorRecord = data.StructLayout({"sample": 32, "step": STEP_BITS, "status": 8, "node": NODE_BITS})
"""The status of a rejected sample, or of a message (sample 0xFFFFFFFF). ``node``, with status PEER,
is the node that does not acknowledge; else 0."""

PooledTag = data.StructLayout(
    {"sample": 32, "first_bag": 16, "last": 1, "status": 8, "reserved": 455})
"""Tag beat of pooled vectors: sample, bag of the first vector, and ``last``, the sample ends here.
``status``: 0, or the :class:`Status` of the packet's last vector, which is then invalid."""

ResultPartTag = data.StructLayout(
    {"sample": SAMPLE_BITS, "first_beat": 16, "last": 1, "status": 8, "reserved": 455})
"""Tag beat of a part of a long result, or of an invalid result: sample, number of the part's first
beat in the result, and ``last``, the result ends here. ``status``, at the end: its :class:`Status`,
or 0."""

IndexTag = data.StructLayout(
    {"sample": SAMPLE_BITS, "first_slot": 16, "samples": 16, "last": 1, "reserved": 447})
"""Tag beat of the indices of slots, 16 bits each, 32 per beat: the sample of the first slot and the
number of the slot in it; the number of samples, consecutive, with slots in the packet; and
``last``, the last of them ends here."""

TableDescriptor = data.StructLayout({
    "valid": 1, "kind": 2, "pool": 1, "mean": 1, "reserved0": 3, "owner": NODE_BITS,
    "owners": NODE_BITS, "final_beat": BEAT_INDEX_BITS, "reserved1": 4,
    "rows_low": 32,
    "rows_high": 4, "reserved2": 12, "column_first": COLUMN_BITS, "column_count": COLUMN_BITS,
    "base": 64,
})
"""Location of the rows of a table: five 32-bit words. ``pool`` is a :class:`PoolPlace`, for NICs
with ``owner_bags``; ``mean``: its bags pool to their mean, with register ``pooling_by_table``.
``final_beat``, if the table pools at its owner: number of the last beat of a vector, from 0.
``base``: address of the table in GPU memory, in bytes from a common base, if the NIC reads rows
itself (:class:`rtl.rings.RowReads`)."""

Request = data.StructLayout({
    "key": Key, "landing": LANDING_BITS, "node": NODE_BITS, "step": STEP_BITS,
})
"""A lookup at its owner: key, and the requester's node, reserved place and step."""

ScatterTag = data.StructLayout({"landing": LANDING_BITS, "node": NODE_BITS, "step": STEP_BITS})
"""Destination of a vector: the part of a :data:`Request` that the scatter list stores."""

VectorBeat = data.StructLayout({"data": BEAT_BITS, "tag": ScatterTag, "last": 1})
"""A beat of a vector in flight to a requester; ``last`` on the final beat of the vector."""

SizedBeat = data.StructLayout(VectorBeat.members | {"final_beat": BEAT_INDEX_BITS})
"""The same of a bag's vector. ``final_beat``: number of the vector's last beat, from 0."""

GradientBeat = data.StructLayout(
    {"key": Key, "beat": BEAT_INDEX_BITS, "step": STEP_BITS, "data": BEAT_BITS})
"""Beat ``beat`` of a gradient of a key, or of a partial sum of its gradients."""

FrameInfo = data.StructLayout({
    "opcode": 8, "destination": NODE_BITS, "step": STEP_BITS, "count": 16, "credit": CREDIT_BITS,
    "empty": 1, "final_beat": BEAT_INDEX_BITS,
})
"""Header fields of a packet from a packager to the frame assembler; ``empty``: no payload;
``final_beat``: see :data:`EmberHeader`."""

HostFrame = data.StructLayout(FrameInfo.members | {"address": 64, "answers": 16, "status": 8})
"""Header fields of a packet to the host, and its address in GPU memory. The address receives the
whole packet of LOOKUP_REQUESTS, header beat first, and the first word of the record of INDEX and
COMPLETION. FLUSH and READ read from it; rows of READ_ROWS are relative to it. Address 0: a queue of
the host. ``answers``: samples of ``step`` that end with the packet, including rejected samples;
``status``, if it is an error of ``step``, a :class:`Status`."""

RecordBeat = data.StructLayout({
    "data": BEAT_BITS, "records": 4, "source": NODE_BITS, "step": STEP_BITS, "last": 1})
"""A received payload beat of ``records`` (1 to 8) records, lowest first; ``last`` of its packet."""

TaggedBeat = data.StructLayout({"tag": TAG_BITS, "data": BEAT_BITS, "last": 1, "lost": 1})
"""A beat of a received vector with its tag, landing or miss id; ``last`` of the vector. ``lost``:
zeros in place of a vector whose owner was given up."""

PeerBeat = data.StructLayout(TaggedBeat.members | {"source": NODE_BITS})
"""The same for a vector that node ``source`` has sent."""

Refused = data.StructLayout({"status": 8, "step": STEP_BITS})
"""A host message that was dropped: :class:`Status`, and the step in its header."""

OutgoingRecord = data.StructLayout(
    {"destination": NODE_BITS, "step": STEP_BITS, "record": RECORD_BITS})
"""A record on the way to a packet: its destination and step."""

OutgoingPartial = data.StructLayout(
    {"destination": NODE_BITS, "step": STEP_BITS, "record": PartialRecord, "data": BEAT_BITS})
"""A beat of a gradient or a row on the way to a packet."""


def repeat_fields(positions: int) -> dict:
    """Return the fields of a slot in a NIC that compares bags, with ``positions`` in a sample.

    repeat: the slot, EMPTY, is a bag that repeats the bag at its ``position`` of the previous
    sample. kept: the slot is a bag that the next sample may repeat.
    """
    return {"repeat": 1, "kept": 1, "position": range(positions)} if positions else {}


def hold_slot(bags: bool, positions: int = 0) -> data.StructLayout:
    """Layout of a slot to be reserved: its :class:`RecordKind`, and ``last`` at the end of its
    sample.

    With ``bags``, a slot may be a bag that its owner has pooled. ``keys``: its number of keys, 0 in
    the slot of a key. ``mean``: mean bit of the slot's table. ``final_beat``: number of the last
    beat of a bag's vector. ``positions``: see :func:`repeat_fields`.
    """
    return data.StructLayout(
        {"kind": 2, "sample": 32, "step": STEP_BITS, "last": 1}
        | ({"keys": BagHead["keys"].width, "mean": 1, "final_beat": BEAT_INDEX_BITS} if bags
           else {})
        | repeat_fields(positions))


HoldSlot = hold_slot(False)
"""The slot of a key, in NICs without owner-pooled bags."""

DenseSlot = data.StructLayout({"sample": SAMPLE_BITS, "step": STEP_BITS})
"""A sample whose dense vector must be requested once a place is reserved for it."""


def words_of(keys, wide, weighted):
    """Return the words of 64 bits behind the head of a bag of ``keys`` keys.

    The arguments are integers or numpy arrays; ``wide`` and ``weighted`` are 0 or 1.
    """
    pairs = (keys + 1) >> 1
    return pairs + wide * (keys >> 1) + weighted * pairs


assert EmberHeader.size == 176 and HeaderBeat.size == BEAT_BITS
assert LookupRecord.size == QueryRecord.size == SampleRecord.size == ErrorRecord.size == RECORD_BITS
assert StepOpenRecord.size == CompletionRecord.size == FlushRecord.size == RECORD_BITS
assert IndexRecord.size == RowReadRecord.size == RECORD_BITS and HostHeaderBeat.size == BEAT_BITS
assert DenseRecord.size == GradientRecord.size == RECORD_BITS and TableDescriptor.size == 160
assert BagHead.size == QueryBag.size == GradientHead.size == RECORD_BITS
assert PartialRecord.size == StepRecord.size == StateRecord.size == RECORD_BITS
assert PooledTag.size == ResultPartTag.size == IndexTag.size == BEAT_BITS
assert unsigned(RECORD_BITS * RECORDS_PER_BEAT).width == BEAT_BITS
