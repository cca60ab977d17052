"""All records on blocks, buses and the wire. Host code packs with these same layouts.

Layouts are least significant bit first: byte ``i`` of a beat is bits ``8i`` to ``8i+7``, so fields
of EmberNIC's own (header, records, tags, floats) are little-endian. Ethernet, IPv4 and UDP fields
are in network order, as in RFC 894, RFC 791 and RFC 768.

A packet is one header beat and ``n`` whole payload beats::

    bytes  0..13  Ethernet II   } zero where a shell has its own UDP stack,
    bytes 14..33  IPv4          } and on the host ports
    bytes 34..41  UDP           }
    bytes 42..63  EmberNIC header

The CRC-32C (Castagnoli, RFC 3720 B.4) of a network packet covers its beats in order, with every
byte of the header beat zero except the two IP addresses and the EmberNIC header, whose own CRC
field is zero too. On host ports, where PCIe has its own check, the field is zero.
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
    "TABLE_BITS", "TAGS_PER_BEAT", "TAG_BITS", "VERSION", "Beat", "CompletionRecord", "DenseRecord",
    "DenseSlot", "DescriptorKind", "EmberHeader", "ErrorRecord", "FlushRecord", "FrameInfo",
    "GradientBeat", "GradientRecord", "HeaderBeat", "HoldSlot", "HostFrame", "HostHeaderBeat",
    "IndexRecord", "IndexTag", "InteractionMode", "Key", "LookupRecord", "Opcode", "OptimizerMode",
    "OutgoingPartial", "OutgoingRecord", "PartialRecord", "PeerBeat", "PooledTag", "QueryRecord",
    "RawBeat", "ReadRecord", "RecordBeat", "RecordKind", "ReductionLevel", "Refused", "Request",
    "ResultPartTag", "RowReadRecord", "SampleRecord", "ScatterTag", "StateRecord", "Status",
    "StepKind", "StepOpenRecord", "StepRecord", "TableDescriptor", "TaggedBeat", "VectorBeat",
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
"""Bits of the offset of a row in GPU memory, and the bytes of its unit."""
EMPTY_INDEX, NO_INDEX = 0xFFFF, 0xFFFE
"""In place of an index: of an EMPTY slot; of a key that came first when all indices were used."""
NO_SAMPLE, END_SAMPLE = 0xFFFFFFFF, 0xFFFFFFFE
"""In place of a sample's number: where there is none; of what ends a share."""


class Opcode(IntEnum):
    """What a packet carries. Below 0x10 between NICs, 0x10 host to NIC, 0x20 NIC to host."""

    LOOKUPS = 0x01
    VECTORS = 0x02
    PARTIALS = 0x03
    STEPS = 0x04
    LINK = 0x05
    PROBE = 0x06
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


class InteractionMode(IntEnum):
    """How a sample's pooled vectors are processed, register ``interaction_mode``."""

    OFF = 0
    """They go to the host unchanged."""
    DOT = 1
    """The dense vector, and the dots of it and the pooled vectors with each other."""
    CAT = 2
    """The dense vector, followed by the pooled vectors."""


class OptimizerMode(IntEnum):
    """How rows are updated by the sums of their gradients."""

    SGD = 0
    """A row loses the learning rate times its gradient."""
    ROWWISE_ADAGRAD = 1
    """The step of a row shrinks with the sum of squares of all its gradients."""


class StepKind(IntEnum):
    """What a :data:`StepRecord` says of its step, whose number is in the header."""

    END = 0
    """To an owner: this node has sent ``count`` partials of the step, and sends no more."""
    DONE = 1
    """To every node: all rows of the step at this owner are written. To the host: the rows at every
    owner are."""
    CREDIT = 2
    """To a node: only the credit in the header matters."""
    PASSED = 3
    """To the host: a pass of reduction ``level`` is over, which spilled ``count`` beats."""


class ReductionLevel(IntEnum):
    """The two gradient reductions of a NIC."""

    LOCAL = 0
    """Gradients of this node's samples, of rows at any owner (paper, 4.2.1)."""
    GLOBAL = 1
    """Sums that all nodes send for the rows of this node (paper, 4.2.2)."""


class RecordKind(IntEnum):
    """Kind of a query record."""

    KEY = 0
    """A key that is not the last of its bag."""
    KEY_END = 1
    """The last key of its bag."""
    EMPTY = 2
    """An empty bag; it takes a slot, and pools to +0. Alone in a packet of gradients: the step's
    gradients end."""
    SAMPLE = 3
    """Head of a sample, see :data:`SampleRecord`."""


class Status(IntEnum):
    """Why a message or a sample was refused."""

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
    """A beat that the host returned names an unknown row or beat; it is in no sum."""
    TIMEOUT = 12
    """In a completion: not all results of the step had left in time."""
    PEER = 13
    """A node has not acknowledged a packet of the step, however often it was sent."""


class DescriptorKind(IntEnum):
    """How the rows of a table are distributed over nodes."""

    TABLE = 0
    """All rows at ``owner``."""
    ROW = 1
    """Rows hashed over ``owners`` nodes from ``owner`` on."""
    COLUMN = 2
    """Columns split over nodes; defined in the format, but not supported."""
    REPLICATED = 3
    """A copy at every node."""


Beat = data.StructLayout({"data": BEAT_BITS, "keep": BEAT_BITS // 8, "last": 1, "err": 1})
"""A beat of a packet at an edge of the NIC; ``err`` is the MAC's verdict, valid with ``last``."""

RawBeat = data.StructLayout({"data": BEAT_BITS, "last": 1})
"""A beat of a packet inside the NIC, where packets are whole beats."""

EmberHeader = data.StructLayout({
    "version": 8, "opcode": 8, "source": NODE_BITS, "destination": NODE_BITS, "epoch": 8,
    "flags": 8, "step": STEP_BITS, "sequence": SEQUENCE_BITS, "acknowledge": SEQUENCE_BITS,
    "credit": CREDIT_BITS, "count": 16, "crc": 32,
})
"""The EmberNIC header, 22 bytes."""

HeaderBeat = data.StructLayout({
    "mac_destination": 48, "mac_source": 48, "ethertype": 16,
    "ip_version_ihl": 8, "ip_tos": 8, "ip_length": 16, "ip_id": 16, "ip_fragment": 16,
    "ip_ttl": 8, "ip_protocol": 8, "ip_checksum": 16, "ip_source": 32, "ip_destination": 32,
    "udp_source": 16, "udp_destination": 16, "udp_length": 16, "udp_checksum": 16,
    "ember": EmberHeader,
})
"""The first beat of a packet. Ethernet, IPv4 and UDP fields hold their bytes in wire order."""

HostHeaderBeat = data.StructLayout({"address": 64, "reserved": 272, "ember": EmberHeader})
"""The first beat of a packet to GPU memory, as :data:`HostFrame` says; others have address 0."""

Key = data.StructLayout({"row": ROW_BITS, "table": TABLE_BITS})
"""A row of a table."""

LookupRecord = data.StructLayout({"row": ROW_BITS, "table": TABLE_BITS, "landing": LANDING_BITS})
"""A key and the place reserved for its vector: a hold-buffer slot, a miss id for the GPU, or for a
peer a miss id and its lap (:class:`rtl.cache.answer_check.AnswerCheck`)."""

DenseRecord = data.StructLayout({"sample": SAMPLE_BITS, "landing": LANDING_BITS, "reserved": 16})
"""A sample whose dense vector is requested, and the place reserved for it, echoed as its tag."""

QueryRecord = data.StructLayout(
    {"row": ROW_BITS, "table": TABLE_BITS, "kind": 2, "reserved": 14})
"""A slot of a sample; ``kind`` is a :class:`RecordKind`."""

GradientRecord = data.StructLayout(
    {"row": ROW_BITS, "table": TABLE_BITS, "kind": 2, "reserved": 14})
"""A key of a bag whose gradient follows; ``kind`` is KEY or KEY_END. A GRADIENTS packet is the
records of whole bags, eight a beat, then a vector a bag, packed as in GPU_VECTORS packets."""

PartialRecord = data.StructLayout(
    {"row": ROW_BITS, "table": TABLE_BITS, "beat": BEAT_INDEX_BITS, "level": 1, "reserved": 11})
"""The key of a beat, and its number in the vector: in PARTIALS, SPILLED, RETURNED and ROW_UPDATES.
Such a packet is its records, eight a beat, then as many beats of values, packed as in VECTORS
packets; ``level``, where it matters, is a :class:`ReductionLevel`, the same in the whole packet."""

StepRecord = data.StructLayout({"count": 32, "kind": 2, "level": 1, "reserved": 29})
"""Progress of a step; ``kind`` is a :class:`StepKind`. WRITTEN, from the host, is one of these too:
``count`` row beats and states that the host has written so far, modulo 2^32."""

StateRecord = data.StructLayout({"state": 32, "landing": LANDING_BITS, "reserved": 16})
"""The optimizer's state of a row, binary32, and the landing of its request."""

StepOpenRecord = data.StructLayout({"samples": 32, "step": STEP_BITS, "freed": 16})
"""A step is opened: the NIC will send its host answers to so many samples of it, at most 2^24; with
delivery ``unique`` that which ends the share is one of them. ``freed``: slots of the ring of
completions that the host has returned so far, modulo 2^16."""

CompletionRecord = data.StructLayout(
    {"status": 8, "step": STEP_BITS, "lap": 8, "slot": 16, "reserved": 16})
"""The word of a completed step, which goes to its slot of a ring, and the slot's number. The word
is the lower half. From the completion on it is at or ahead of ``lap << 24 | step << 8``, cyclically
(as a signed difference of 32 bits), and behind before: the slot's former word has the lap before,
and the first lap is 1, in a ring that is zero."""

FlushRecord = data.StructLayout({"slot": 16, "tag": 16, "reserved": 32})
"""All that was written before is to be in GPU memory; FLUSHED echoes the record when it is."""

IndexRecord = data.StructLayout({"index": 16, "reserved": 48})
"""How many slots of a ring were filled or emptied so far, modulo 2^16; a word, the lower half."""

ReadRecord = data.StructLayout({"bytes": 32, "tag": 16, "reserved": 16})
"""Bytes of GPU memory that READ_DATA is to bring, from the packet's address on, with the tag in its
header."""

RowReadRecord = data.StructLayout({"offset": OFFSET_BITS, "units": 8, "tag": 16})
"""A row that GPU_VECTORS is to bring with the same tag: ``units`` of 16 bytes of GPU memory, from
16 * ``offset`` behind the packet's address on."""

SampleRecord = data.StructLayout(
    {"sample": 32, "slots": 16, "kind": 2, "ends": 1, "reserved": 13})
"""Head of a sample: its number and how many slot records follow. ``kind`` = SAMPLE. One that
``ends`` has one slot, EMPTY: with delivery ``unique`` it is no sample, but says that the share of
its step is over, and END_SAMPLE may be its number."""

ErrorRecord = data.StructLayout({"sample": 32, "step": STEP_BITS, "status": 8, "node": NODE_BITS})
"""The status of a refused sample; sample 0xFFFFFFFF when none can be named. ``node``, with status
PEER, is that which does not acknowledge; else 0."""

PooledTag = data.StructLayout(
    {"sample": 32, "first_bag": 16, "last": 1, "status": 8, "reserved": 455})
"""Tag beat of pooled vectors: sample, bag of the first vector, whether the sample ends here.
``status``: 0, or the :class:`Status` of the packet's last vector, which is then of no use."""

ResultPartTag = data.StructLayout(
    {"sample": SAMPLE_BITS, "first_beat": 16, "last": 1, "status": 8, "reserved": 455})
"""Tag beat of a part of a long result, or of a result of no use: sample, number of the part's first
beat in the result, whether the result ends here, and where it ends its :class:`Status`, or 0."""

IndexTag = data.StructLayout(
    {"sample": SAMPLE_BITS, "first_slot": 16, "samples": 16, "last": 1, "reserved": 447})
"""Tag beat of the indices of slots, 16 bits each, 32 a beat: the sample of the first slot and the
slot's number in it; how many samples, numbered in sequence, have slots in the packet; whether the
last of them ends here."""

TableDescriptor = data.StructLayout({
    "valid": 1, "kind": 2, "reserved0": 5, "owner": NODE_BITS, "owners": NODE_BITS, "reserved1": 8,
    "rows_low": 32,
    "rows_high": 4, "reserved2": 12, "column_first": COLUMN_BITS, "column_count": COLUMN_BITS,
    "base": 64,
})
"""Where the rows of a table live: five 32-bit words. ``base``: in GPU memory, bytes from where all
tables are on, if the NIC reads rows itself (:class:`rtl.rings.RowReads`)."""

Request = data.StructLayout({
    "key": Key, "landing": LANDING_BITS, "node": NODE_BITS, "step": STEP_BITS,
})
"""A lookup at its owner: key, and the requester's node, reserved place and step."""

ScatterTag = data.StructLayout({"landing": LANDING_BITS, "node": NODE_BITS, "step": STEP_BITS})
"""Destination of a vector: what the scatter list keeps of a :data:`Request`."""

VectorBeat = data.StructLayout({"data": BEAT_BITS, "tag": ScatterTag, "last": 1})
"""A beat of a vector on its way to a requester; ``last`` on the final beat of the vector."""

GradientBeat = data.StructLayout(
    {"key": Key, "beat": BEAT_INDEX_BITS, "step": STEP_BITS, "data": BEAT_BITS})
"""Beat ``beat`` of a gradient of a key, or of a partial sum of its gradients."""

FrameInfo = data.StructLayout({
    "opcode": 8, "destination": NODE_BITS, "step": STEP_BITS, "count": 16, "credit": CREDIT_BITS,
    "empty": 1,
})
"""A packet's header fields from a packager to the frame assembler; ``empty``: no payload."""

HostFrame = data.StructLayout(FrameInfo.members | {"address": 64, "answers": 16, "status": 8})
"""The same of a packet to the host, and the address in GPU memory where it goes: of LOOKUP_REQUESTS
the whole packet, header beat first; of INDEX and COMPLETION the first word of the record; of FLUSH
and READ, what is read back or read; of READ_ROWS, from where on rows lie. Address 0: a queue of
the host's, as before. ``answers``: samples of ``step`` that end with the packet, refused ones
included; ``status``, if it is an error of ``step``, a :class:`Status`."""

RecordBeat = data.StructLayout({
    "data": BEAT_BITS, "records": 4, "source": NODE_BITS, "step": STEP_BITS, "last": 1})
"""A received payload beat of ``records`` (1 to 8) records, lowest first; ``last`` of its packet."""

TaggedBeat = data.StructLayout({"tag": TAG_BITS, "data": BEAT_BITS, "last": 1, "lost": 1})
"""A beat of a received vector with the vector's tag, landing or miss id; ``last`` of the vector.
``lost``: zeros in place of a vector whose owner was given up."""

PeerBeat = data.StructLayout(TaggedBeat.members | {"source": NODE_BITS})
"""The same of a vector that node ``source`` has sent."""

Refused = data.StructLayout({"status": 8, "step": STEP_BITS})
"""A host message that was dropped: :class:`Status`, and the step its header names."""

OutgoingRecord = data.StructLayout(
    {"destination": NODE_BITS, "step": STEP_BITS, "record": RECORD_BITS})
"""A record on its way to a packet: its destination and step."""

OutgoingPartial = data.StructLayout(
    {"destination": NODE_BITS, "step": STEP_BITS, "record": PartialRecord, "data": BEAT_BITS})
"""A beat of a gradient or a row on its way to a packet."""

HoldSlot = data.StructLayout({"kind": 2, "sample": 32, "step": STEP_BITS, "last": 1})
"""A slot to be reserved: its :class:`RecordKind`, and ``last`` if it ends its sample."""

DenseSlot = data.StructLayout({"sample": SAMPLE_BITS, "step": STEP_BITS})
"""A sample whose dense vector must be requested, after a place is reserved for it."""

assert EmberHeader.size == 176 and HeaderBeat.size == BEAT_BITS
assert LookupRecord.size == QueryRecord.size == SampleRecord.size == ErrorRecord.size == RECORD_BITS
assert StepOpenRecord.size == CompletionRecord.size == FlushRecord.size == RECORD_BITS
assert IndexRecord.size == RowReadRecord.size == RECORD_BITS and HostHeaderBeat.size == BEAT_BITS
assert DenseRecord.size == GradientRecord.size == RECORD_BITS and TableDescriptor.size == 160
assert PartialRecord.size == StepRecord.size == StateRecord.size == RECORD_BITS
assert PooledTag.size == ResultPartTag.size == IndexTag.size == BEAT_BITS
assert unsigned(RECORD_BITS * RECORDS_PER_BEAT).width == BEAT_BITS
