"""Documentation of :mod:`rtl.formats`: each field of a record, and the content of each packet.

Documents are generated from these data; a test compares them with the layouts.
"""

from typing import NamedTuple

from rtl.formats import Opcode, Status

__all__ = ["BOUNDS", "CODES", "FIELDS", "PACKETS", "TASKS", "Packet"]

FIELDS = {
    # Header beat. A name without a record applies unless a "Record.field" overrides it.
    "mac_destination": "MAC address of the receiver, zero on host ports",
    "mac_source": "MAC address of the sender, zero on host ports; a packet is foreign unless this "
                  "is the address of node `source`",
    "ethertype": "0x0800, IPv4; zero on host ports, like all fields up to the UDP checksum",
    "ip_version_ihl": "0x45: version 4, no options",
    "ip_tos": "sent as 0, received as any",
    "ip_length": "bytes from the IPv4 header to the end of the payload",
    "ip_id": "sent as 0 (RFC 6864)",
    "ip_fragment": "don't fragment; fragments are foreign",
    "ip_ttl": "sent as 64",
    "ip_protocol": "17, UDP",
    "ip_checksum": "of the IPv4 header (RFC 791)",
    "ip_source": "IPv4 address of the sender: the address of node 0 plus the node number",
    "ip_destination": "IPv4 address of the receiver, computed likewise",
    "address": "address of the first byte to read",
    "HostHeaderBeat.address": "address in GPU memory that the packet writes or reads; otherwise 0",
    "udp_source": "port of the NICs, register udp_port",
    "udp_destination": "the same port",
    "udp_length": "bytes from the UDP header to the end of the payload",
    "udp_checksum": "0: the CRC covers addresses, header and payload",
    "version": "version of the formats, 1",
    "opcode": "kind of the packet, see the packets",
    "source": "number of the sending node; ignored from a host",
    "EmberHeader.destination": "number of the receiving node; in SPILLED the reduction level",
    "epoch": "between NICs with a reliable link: register link_epoch, or for a node that rejoined "
             "the epoch in link_rejoin; else 0",
    "EmberHeader.final_beat": "in BAG_VECTORS and GPU_BAGS: number of the last beat of each "
                              "vector, from 0; else 0",
    "final_beat": "number of the last beat of a vector of the table, from 0, if the table pools at "
                  "its owner; else 0",
    "step": "step of the content, modulo 2^16",
    "sequence": "earlier packets of this sender and edge, modulo 2^24; not checked. With a "
                "reliable link: earlier packets to the receiver; in LINK the packet of bit 0",
    "acknowledge": "with a reliable link: first packet from the receiver to this sender that has "
                   "not arrived, modulo 2^24; to the host: beats of gradients and of returned "
                   "spills consumed, modulo 2^16; in READ_DATA: tag of the read",
    "credit": "beats consumed by the sender of this packet, modulo 2^16: between NICs lookups, or "
              "in PARTIALS and STEPS partials; towards the host queries",
    "EmberHeader.count": "records, vectors or indices; in RESULT_PART beats of the part; in "
                         "READ_DATA words of 8 bytes, eight per beat, or 1 for a failed read",
    "crc": "CRC-32C of the packet as described above; 0 on host ports",
    # Records.
    "row": "row of the table",
    "table": "number of the table",
    "landing": "place reserved for the answer, which returns it as tag",
    "LookupRecord.landing": "between NICs: miss id of the remote cache, and above it the lap, the "
                            "number of uses of the id; towards the host: miss id of the local "
                            "cache; in STATE_REQUESTS: number of the row, modulo 2^16",
    "StateRecord.landing": "number of the requesting row, modulo 2^16",
    "kind": "kind of record",
    "QueryRecord.kind": "RecordKind: KEY, KEY_END or EMPTY",
    "bag": "1: the head of a bag that pools at its owner, a QueryBag; else 0",
    "QueryBag.kind": "RecordKind: KEY_END",
    "keys": "keys of the bag, at least 1",
    "wide": "1: a row uses a word of 64 bits; 0: two rows share it",
    "weighted": "1: the weights of the keys follow the rows",
    "part": "0, reserved for bags that are longer than a packet",
    "more": "0, likewise",
    "BagHead.landing": "between NICs: id of the bag at its requester, and above it the lap, the "
                       "number of uses of the id; towards the host: place at the owner",
    "GradientHead.landing": "number of the bag's sample in the share of its node",
    "GradientHead.weighted": "0",
    "GradientHead.source": "in lists to the host: node of the bag; else ignored",
    "gradient": "1: the gradient of the bag follows its rows, two float32 per word",
    "GradientRecord.kind": "RecordKind: KEY or KEY_END; EMPTY ends the step",
    "SampleRecord.kind": "RecordKind: SAMPLE",
    "StepRecord.kind": "StepKind",
    "TableDescriptor.kind": "DescriptorKind",
    "reserved": "0",
    "sample": "number of the sample",
    "node": "with status PEER: node that does not acknowledge; else 0",
    "ErrorRecord.sample": "number of the sample; 0xFFFFFFFF: the error concerns a message",
    "slots": "number of slot records that follow",
    "ends": "1: no sample; the share of its step is over",
    "status": "Status: reason of the rejection",
    "beat": "number of the beat in its vector",
    "level": "ReductionLevel",
    "StepOpenRecord.samples": "samples that the NIC will answer; the end of a share counts as one",
    "freed": "slots of the ring of completions returned so far, modulo 2^16",
    "StepOpenRecord.step": "the step that is opened",
    "CompletionRecord.status": "Status, the first error of the step, or 0",
    "CompletionRecord.step": "the step that is complete",
    "lap": "number of uses of the slot, including this use, modulo 256",
    "slot": "slot of the ring of completions",
    "FlushRecord.tag": "number of the flush, modulo 2^16",
    "index": "slots, modulo 2^16",
    "bytes": "length, a multiple of 64",
    "ReadRecord.tag": "number of the slot, modulo 2^16",
    "offset": "offset of the row from the packet's address, in units of 16 bytes",
    "units": "length of the row, in units of 16 bytes",
    "RowReadRecord.tag": "miss id of the local cache that the row answers",
    "StepRecord.count": "partials, beats spilled or beats written, by kind, modulo 2^32",
    "state": "the optimizer's state of the row, binary32",
    "first_bag": "bag of the first vector of the packet",
    "first_beat": "number, in the result, of the first beat of the packet",
    "PooledTag.last": "the sample ends with this packet",
    "PooledTag.status": "Status of the last vector, 0 if it is valid; PEER: its owner is given up",
    "first_slot": "number, in its sample, of the first slot of the packet",
    "IndexTag.samples": "number of consecutive samples with slots in the packet",
    "IndexTag.sample": "number of the sample of the first slot",
    "IndexTag.last": "the last of its samples ends with this packet",
    "ResultPartTag.last": "the result ends with this packet",
    "ResultPartTag.status": "Status of the result that ends, 0 if it is valid",
    "valid": "1: the table exists",
    "pool": "PoolPlace of its bags; used with owner_bags",
    "mean": "1: its bags pool to their mean; used with register pooling_by_table",
    "reserved0": "0",
    "owner": "first, or only, node that owns rows",
    "owners": "number of nodes that own rows, starting with owner",
    "reserved1": "0",
    "rows_low": "rows of the table, bits 31 to 0",
    "rows_high": "rows of the table, bits 35 to 32",
    "reserved2": "0",
    "column_first": "first lane of 16 values of a table that is split by columns (unsupported)",
    "column_count": "number of lanes of 16 values (unsupported)",
    "base": "address of the table in GPU memory, relative to rows_base_low and rows_base_high, in "
            "bytes, a multiple of 16; used with register row_reads",
}
"""Meaning of a field by its name, or by ``Layout.field`` if layouts differ."""

CODES = {
    Status.OPCODE: "unknown packet of a host, or wrong version",
    Status.LENGTH: "count, records or vectors do not fit the payload",
    Status.TABLE: "table without a valid descriptor, or with an owner outside the cluster",
    Status.ROW: "row beyond the rows of the table",
    Status.SAMPLE_SIZE: "0 slots, more than half of the hold buffer, or a bag left open at the end",
    Status.TRUNCATED: "records end before the sample or the bag does",
    Status.NO_SAMPLE: "slots outside a sample",
    Status.CREDIT: "sent without a credit, and dropped",
    Status.KIND: "record of a kind that is not allowed at this position; table split by columns; "
                 "in training also a replicated table",
    Status.STEP: "gradients of a step that is not open, or ended; sample of a step too far ahead",
    Status.RETURNED: "a returned beat names an unknown row or beat; its sum lacks it",
    Status.TIMEOUT: "in a completion: results of the step were missing at its timeout",
    Status.PEER: "a node did not acknowledge a packet of the step after all tries",
}
"""Meaning of a status."""


class Packet(NamedTuple):
    """Content of a packet after its header beat.

    records: layout of the records or of the tag after the header, "" without records.
    behind: description of the rest.
    sender: direction of the packet.
    training: the packet is used only in training.
    """

    sender: str
    records: str = ""
    behind: str = ""
    training: bool = False


_VECTORS = "the vectors, float32, back to back; vectors of 4 or 8 values share beats"
_BAGS = ("rows and weights of the bag; bags follow each other; a bag is whole in its packet; count "
         "is the number of words of 64 bits")
_GRADIENTS = ("rows and gradient of the bag; bags follow each other; a bag is whole in its packet; "
              "count is the number of words of 64 bits")
_VALUES = "a beat of float32 for each record; vectors of 4 or 8 values share beats"

PACKETS = {
    Opcode.LOOKUPS: Packet("NIC to NIC", "LookupRecord"),
    Opcode.VECTORS: Packet("NIC to NIC", "", "a tag beat of 32 landings of 16 bits, 0 beyond the "
                           f"vectors; {_VECTORS}"),
    Opcode.PARTIALS: Packet("NIC to NIC", "PartialRecord", _VALUES, True),
    Opcode.STEPS: Packet("NIC to NIC", "StepRecord", "", True),
    Opcode.LINK: Packet("NIC to NIC", "", "a beat of 512 bits: bit k is 1 if the packet number "
                        "sequence + k has arrived; count is 8"),
    Opcode.PROBE: Packet("NIC to NIC", "", "a beat of zeros; count is 8. The receiver only "
                         "acknowledges it"),
    Opcode.BAGS: Packet("NIC to NIC", "BagHead", _BAGS),
    Opcode.BAG_VECTORS: Packet("NIC to NIC", "", "a tag beat of 32 landings of 16 bits, 0 beyond "
                               f"the vectors; {_VECTORS}"),
    Opcode.QUERIES: Packet("host to NIC", "QueryRecord", "samples, each a SampleRecord and then its"
                           " slots; a sample may continue in the next packet"),
    Opcode.GPU_VECTORS: Packet("host to NIC", "", "tag beats, 32 miss ids of 16 bits each; "
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
    Opcode.READ_DATA: Packet("host to NIC", "", "the bytes read: the payload of a GPU_VECTORS "
                             "packet"),
    Opcode.GPU_BAGS: Packet("host to NIC", "", "tag beats, 32 places of 16 bits each; the sums of "
                            f"the bags: {_VECTORS}"),
    Opcode.BAG_GRADIENTS: Packet("host to NIC", "GradientHead", _GRADIENTS, True),
    Opcode.LOOKUP_REQUESTS: Packet("NIC to host", "LookupRecord"),
    Opcode.POOLED: Packet("NIC to host", "PooledTag", _VECTORS),
    Opcode.ERRORS: Packet("NIC to host", "ErrorRecord"),
    Opcode.CREDIT: Packet("NIC to host", "", "no payload: the header has the credit"),
    Opcode.DENSE_REQUESTS: Packet("NIC to host", "DenseRecord"),
    Opcode.RESULTS: Packet("NIC to host", "", "tag beats of 16 sample numbers of 32 bits; the "
                           "results, float32, whole beats each, all of one length"),
    Opcode.RESULT_PART: Packet("NIC to host", "ResultPartTag", "beats of the result"),
    Opcode.SPILLED: Packet("NIC to host", "PartialRecord", _VALUES, True),
    Opcode.ROW_UPDATES: Packet("NIC to host", "PartialRecord", _VALUES, True),
    Opcode.STATE_REQUESTS: Packet("NIC to host", "LookupRecord", "", True),
    Opcode.STATE_UPDATES: Packet("NIC to host", "StateRecord", "", True),
    Opcode.STEP_REPORTS: Packet("NIC to host", "StepRecord", "", True),
    Opcode.INDICES: Packet("NIC to host", "IndexTag", "indices of 16 bits, 32 per beat: number of "
                           "a slot's vector among the distinct vectors of its step; 0xFFFF for an "
                           "EMPTY slot, 0xFFFE when all indices were used; 0 beyond the slots"),
    Opcode.FLUSH: Packet("NIC to host", "FlushRecord"),
    Opcode.COMPLETION: Packet("NIC to host", "CompletionRecord"),
    Opcode.READ: Packet("NIC to host", "ReadRecord"),
    Opcode.INDEX: Packet("NIC to host", "IndexRecord"),
    Opcode.READ_ROWS: Packet("NIC to host", "RowReadRecord"),
    Opcode.BAG_LISTS: Packet("NIC to host", "BagHead", _BAGS),
}
"""Packets by opcode. A beat has eight records; unused places and lanes are zero."""

TASKS = {
    (Opcode.QUERIES,): "send samples",
    (Opcode.LOOKUP_REQUESTS,): "send GPU_VECTORS for each record (tag: `landing`), in any order. "
                               "If the header has an address, write the whole packet there",
    (Opcode.BAG_LISTS,): "send GPU_BAGS for each bag (tag: `landing`), the sum of its rows in "
                         "order. A bag with a gradient (GradientHead) has no answer",
    (Opcode.READ_ROWS,): "send GPU_VECTORS for each record (tag: `tag`), in any order",
    (Opcode.DENSE_REQUESTS,): "send DENSE_VECTORS (tag: `landing`)",
    (Opcode.STEP_OPEN,): "send it before the queries of a step, with completions",
    (Opcode.FLUSH,): "send its record as FLUSHED, when all earlier writes are visible in GPU "
                     "memory",
    (Opcode.READ,): "send `bytes` from the header's address as READ_DATA; `count` 1: the read "
                    "failed",
    (Opcode.COMPLETION, Opcode.INDEX): "write the lower 4 bytes of the record to the header's "
                                       "address",
    (Opcode.POOLED, Opcode.RESULTS, Opcode.RESULT_PART, Opcode.INDICES, Opcode.ERRORS):
        "take the answer or the status; sample 0xFFFFFFFF: a message was dropped",
    (Opcode.CREDIT,): "take the credit of its header",
    (Opcode.GRADIENTS, Opcode.BAG_GRADIENTS, Opcode.RETURNED, Opcode.STATES, Opcode.WRITTEN):
        "send them in training",
}
"""Tasks of the host by opcode."""

BOUNDS = {
    "payload beats of QUERIES, sent less the header's `credit`": "`config_query_beats`",
    "payload beats of GRADIENTS, BAG_GRADIENTS and RETURNED, sent less the header's `acknowledge`":
        "`config_gradient_beats` - `config_host_payload_beats` - 2",
    "payload beats of a packet":
        "1 to `config_host_payload_beats`; of QUERIES at most half of `config_query_beats`",
    "slots of a sample": "1 to half of `config_hold_vectors`",
    "number of a sample": "0 to 0xFFFFFFFD",
    "samples of STEP_OPEN": "2^24",
    "open steps": "`config_completion_slots`, with different numbers",
    "slots of a share with `unique_delivery`":
        "65,534; the indices 0xFFFF (EMPTY) and 0xFFFE (no index) are reserved",
    "`request_batch` with `gpu_rings` or `row_reads`":
        "vectors that fit one packet with their tag beats",
}
"""Bounds of a host's messages; names ``config_`` are registers."""
