"""Documentation of :mod:`rtl.formats`: each field of a record, and the content of each packet.

It is data, not comments, so that documents can be generated; a test compares it with the layouts.
"""

from typing import NamedTuple

from rtl.formats import Opcode, Status

__all__ = ["CODES", "FIELDS", "PACKETS", "Packet"]

FIELDS = {
    # Header beat. A name without a record applies unless a "Record.field" overrides it.
    "mac_destination": "MAC address of the receiver, zero on host ports",
    "mac_source": "MAC address of the sender, zero on host ports; a packet whose sender is not the "
                  "node that `source` names is foreign",
    "ethertype": "0x0800, IPv4; zero on host ports, as all up to the UDP checksum",
    "ip_version_ihl": "0x45: version 4, no options",
    "ip_tos": "sent as 0, received as any",
    "ip_length": "bytes from the IPv4 header to the end of the payload",
    "ip_id": "sent as 0 (RFC 6864)",
    "ip_fragment": "don't fragment; fragments are foreign",
    "ip_ttl": "sent as 64",
    "ip_protocol": "17, UDP",
    "ip_checksum": "of the IPv4 header (RFC 791)",
    "ip_source": "IPv4 address of the sender: that of node 0 plus its number",
    "ip_destination": "IPv4 address of the receiver, likewise",
    "address": "bytes to read from here on",
    "HostHeaderBeat.address": "in GPU memory, of what the packet writes or reads; otherwise 0",
    "udp_source": "the NICs' port, register udp_port",
    "udp_destination": "the same port",
    "udp_length": "bytes from the UDP header to the end of the payload",
    "udp_checksum": "0: the CRC covers addresses, header and payload",
    "version": "version of the formats, 1",
    "opcode": "what the packet carries, see the packets",
    "source": "number of the sending node; ignored from a host",
    "EmberHeader.destination": "number of the receiving node; in SPILLED the level",
    "epoch": "between NICs with a reliable link, register link_epoch, or of link_rejoin for a node "
             "taken back; else 0",
    "flags": "0, reserved",
    "step": "step of the content, modulo 2^16",
    "sequence": "packets of this sender and edge before this one, modulo 2^24; shown, not checked. "
                "With a reliable link, those to the receiver; in LINK the first packet of the bits",
    "acknowledge": "with a reliable link, the first packet of the receiver to this sender that has "
                   "not come, modulo 2^24; to the host: beats of gradients and of returned spills "
                   "consumed, modulo 2^16; in READ_DATA the tag of the read",
    "credit": "beats consumed of what the receiver of this packet sends against credit, modulo "
              "2^16: lookups, or in PARTIALS and STEPS partials, between NICs; queries towards the "
              "host",
    "EmberHeader.count": "records, vectors or indices; in RESULT_PART beats of the part; in "
                         "READ_DATA words of 8 bytes, eight a beat; of a read that failed one",
    "crc": "CRC-32C of the packet as described above; 0 on host ports",
    # Records.
    "row": "row of the table",
    "table": "number of the table",
    "landing": "place reserved for the answer, which echoes it",
    "LookupRecord.landing": "id of the miss that the vector answers: between NICs of the remote "
                            "cache, and above it its lap, how often the id was used; towards the "
                            "host of the local cache; in STATE_REQUESTS the number of the row, "
                            "modulo 2^16",
    "StateRecord.landing": "number of the requesting row, modulo 2^16",
    "kind": "kind of record",
    "QueryRecord.kind": "RecordKind: KEY, KEY_END or EMPTY",
    "GradientRecord.kind": "RecordKind: KEY or KEY_END; EMPTY ends the step",
    "SampleRecord.kind": "RecordKind: SAMPLE",
    "StepRecord.kind": "StepKind",
    "TableDescriptor.kind": "DescriptorKind",
    "reserved": "0",
    "sample": "number of the sample",
    "node": "with status PEER the node that does not acknowledge, else 0",
    "ErrorRecord.sample": "number of the sample, 0xFFFFFFFF when none can be named",
    "slots": "slot records that follow",
    "ends": "no sample: the share of its step is over",
    "status": "Status: why it was refused",
    "beat": "number of the beat in its vector",
    "level": "ReductionLevel",
    "StepOpenRecord.samples": "samples that the NIC will answer; what ends a share is one",
    "freed": "slots of the ring of completions returned so far, modulo 2^16",
    "StepOpenRecord.step": "the step that is opened",
    "CompletionRecord.status": "Status, the first of the step; 0 if it has none",
    "CompletionRecord.step": "the step that is complete",
    "lap": "times that the ring has come to this slot, this one included, modulo 256",
    "slot": "slot of the ring of completions",
    "FlushRecord.tag": "number of the flush, modulo 2^16",
    "index": "slots, modulo 2^16",
    "bytes": "length, a multiple of 64",
    "ReadRecord.tag": "number of the slot, modulo 2^16",
    "offset": "of the row from the packet's address on, in units of 16 bytes",
    "units": "length of the row, in units of 16 bytes",
    "RowReadRecord.tag": "id of the miss of the local cache that the row answers",
    "StepRecord.count": "partials, beats spilled or beats written, as the kind says, modulo 2^32",
    "state": "the optimizer's state of the row, binary32",
    "first_bag": "bag of the first vector of the packet",
    "first_beat": "beat of the result that is the first of the packet",
    "PooledTag.last": "the sample ends with this packet",
    "PooledTag.status": "Status of the last vector, 0 if it is good; PEER: its owner is given up",
    "first_slot": "number, in its sample, of the first slot of the packet",
    "IndexTag.samples": "samples, numbered in sequence, that have slots in the packet",
    "IndexTag.sample": "number of the sample of the first slot",
    "IndexTag.last": "the last of its samples ends with this packet",
    "ResultPartTag.last": "the result ends with this packet",
    "ResultPartTag.status": "Status of the result that ends, 0 if it is good",
    "valid": "the table is there",
    "reserved0": "0",
    "owner": "first or only node that owns rows",
    "owners": "nodes that own rows, from owner on",
    "reserved1": "0",
    "rows_low": "rows of the table, bits 31 to 0",
    "rows_high": "rows of the table, bits 35 to 32",
    "reserved2": "0",
    "column_first": "first lane of 16 values, where a table is split by columns (not executed)",
    "column_count": "lanes of 16 values, likewise",
    "base": "of the table in GPU memory, in bytes from where all tables are on, a multiple of 16; "
            "counts with register row_reads",
}
"""Meaning of a field by its name, or by ``Layout.field`` for a more specific one."""

CODES = {
    Status.OPCODE: "not a packet that a host sends, or another version",
    Status.LENGTH: "count, records or vectors do not fit the payload",
    Status.TABLE: "a table without a valid descriptor, or with an owner outside the cluster",
    Status.ROW: "a row that the table does not have",
    Status.SAMPLE_SIZE: "no slots, more than the hold buffer takes, or a bag left open at the end",
    Status.TRUNCATED: "records end before the sample or the bag does",
    Status.NO_SAMPLE: "slots outside a sample",
    Status.CREDIT: "sent without a credit, and lost",
    Status.KIND: "a record of a kind that is not allowed there, a table split by columns, or in "
                 "training one that is replicated",
    Status.STEP: "gradients of a step that is not open or has ended; a sample of one far ahead",
    Status.RETURNED: "a returned beat names an unknown row or beat; its sum lacks it",
    Status.TIMEOUT: "in a completion: not all results of the step had left in time",
    Status.PEER: "a node has not acknowledged a packet of the step, however often it was sent",
}
"""Meaning of a status."""


class Packet(NamedTuple):
    """What follows the header beat: ``records``, the layout of the records or tag that come first,
    "" for none; ``behind``, what comes next; ``sender``; ``training``, only sent in training."""

    sender: str
    records: str = ""
    behind: str = ""
    training: bool = False


_VECTORS = "the vectors, float32, one after the other; those of 4 or 8 values share beats"
_VALUES = "a beat of float32 for each record; those of 4 or 8 values share beats"

PACKETS = {
    Opcode.LOOKUPS: Packet("NIC to NIC", "LookupRecord"),
    Opcode.VECTORS: Packet("NIC to NIC", "", "a tag beat of 32 landings of 16 bits, 0 where there "
                           f"is no vector; {_VECTORS}"),
    Opcode.PARTIALS: Packet("NIC to NIC", "PartialRecord", _VALUES, True),
    Opcode.STEPS: Packet("NIC to NIC", "StepRecord", "", True),
    Opcode.LINK: Packet("NIC to NIC", "", "a beat of 512 bits, from bit 0 on: whether the packet "
                        "of the header's sequence, and each after it, has come; count is 8"),
    Opcode.PROBE: Packet("NIC to NIC", "", "a beat of zeros; count is 8. The receiver acknowledges "
                         "it, and does nothing else"),
    Opcode.QUERIES: Packet("host to NIC", "QueryRecord", "samples, each a SampleRecord and then its"
                           " slots; they may go on in the next packet"),
    Opcode.GPU_VECTORS: Packet("host to NIC", "", "tag beats, 32 ids of misses of 16 bits each; "
                               f"{_VECTORS}"),
    Opcode.DENSE_VECTORS: Packet("host to NIC", "", "tag beats, 32 places of 16 bits each; "
                                 f"{_VECTORS}"),
    Opcode.GRADIENTS: Packet("host to NIC", "GradientRecord", "a vector for each bag, as above",
                             True),
    Opcode.RETURNED: Packet("host to NIC", "PartialRecord", _VALUES, True),
    Opcode.STATES: Packet("host to NIC", "StateRecord", "", True),
    Opcode.WRITTEN: Packet("host to NIC", "StepRecord", "", True),
    Opcode.STEP_OPEN: Packet("host to NIC", "StepOpenRecord"),
    Opcode.FLUSHED: Packet("host to NIC", "FlushRecord"),
    Opcode.READ_DATA: Packet("host to NIC", "", "the bytes that were read: what follows the header "
                             "of a GPU_VECTORS packet"),
    Opcode.LOOKUP_REQUESTS: Packet("NIC to host", "LookupRecord"),
    Opcode.POOLED: Packet("NIC to host", "PooledTag", _VECTORS),
    Opcode.ERRORS: Packet("NIC to host", "ErrorRecord"),
    Opcode.CREDIT: Packet("NIC to host", "", "nothing: the header carries the credit"),
    Opcode.DENSE_REQUESTS: Packet("NIC to host", "DenseRecord"),
    Opcode.RESULTS: Packet("NIC to host", "", "tag beats of 16 sample numbers of 32 bits; the "
                           "results, float32, whole beats each, all of one length"),
    Opcode.RESULT_PART: Packet("NIC to host", "ResultPartTag", "beats of the result"),
    Opcode.SPILLED: Packet("NIC to host", "PartialRecord", _VALUES, True),
    Opcode.ROW_UPDATES: Packet("NIC to host", "PartialRecord", _VALUES, True),
    Opcode.STATE_REQUESTS: Packet("NIC to host", "LookupRecord", "", True),
    Opcode.STATE_UPDATES: Packet("NIC to host", "StateRecord", "", True),
    Opcode.STEP_REPORTS: Packet("NIC to host", "StepRecord", "", True),
    Opcode.INDICES: Packet("NIC to host", "IndexTag", "indices of 16 bits, 32 a beat: of a slot's "
                           "vector among the different ones of its step; 0xFFFF of an EMPTY slot, "
                           "0xFFFE where all indices were used; zero where there is no slot"),
    Opcode.FLUSH: Packet("NIC to host", "FlushRecord"),
    Opcode.COMPLETION: Packet("NIC to host", "CompletionRecord"),
    Opcode.READ: Packet("NIC to host", "ReadRecord"),
    Opcode.INDEX: Packet("NIC to host", "IndexRecord"),
    Opcode.READ_ROWS: Packet("NIC to host", "RowReadRecord"),
}
"""Packets by opcode. Records lie eight a beat; unused places and lanes are zero."""
