"""The C++ configuration of a modelled NIC: sizes, registers and latencies."""

from collections.abc import Mapping
from ctypes import c_uint32

from rtl.bags import BagLanding, BagPool, BufferedLostBags, OwnerPlaces, check
from rtl.cache import resolver, scatter_list, tags, vectors
from rtl.cache.fills import FillWriter
from rtl.cache.free_list import FreeList
from rtl.cache.number_pool import NumberPool
from rtl.config import NicConfig
from rtl.control.csr import RegisterBlock
from rtl.delivery import indices, unique
from rtl.float import (
    COUNT_DIVIDER_LANE_LATENCY,
    FLOAT_ADDER_LATENCY,
    RECIPROCAL_LATENCY,
)
from rtl.formats import ValueFormat
from rtl.interaction import CodeReader, DotInteraction, HoldBuffer, Pooler, VectorDecoder
from rtl.interaction.bag_ring import LOOP
from rtl.interaction.dot_array import DotArray
from rtl.interaction.dot_schedule import REUSE
from rtl.interaction.flatten import Flattener
from rtl.interaction.pooling import BAGS, OUT_BEATS
from rtl.interaction.result_groups import ResultGrouper
from rtl.interaction.slices import SliceLoader, ring_depth
from rtl.keys.owner_split import OwnerSplit
from rtl.keys.set_loop import SetLoop
from rtl.network import FrameAssembler, FrameReceiver, PacketParser, output_queues
from rtl.network.link import intake
from rtl.network.link.arrival_bits import WORD
from rtl.network.link.arrival_scan import BLOCKS, ArrivalScan
from rtl.network.link.frame_pool import FramePool
from rtl.network.link.layouts import ARRIVALS, WINDOW
from rtl.network.link.node_queue import NodeQueue
from rtl.network.link.pool_room import PoolRoom
from rtl.network.link.receiver import LinkReceiver
from rtl.network.link.report_queue import ReportQueue
from rtl.network.link.sender import POOL_BEATS, LinkSender
from rtl.network.link.walker import Walker
from rtl.network.packet_pool import packet_buffers
from rtl.network.queue_turns import BURST, LEAST
from rtl.nic import REQUEST_FIFO
from rtl.nic_control import SETTLING
from rtl.query import BagRepeats, repeats
from rtl.query.reporter import OwedCredit
from rtl.rings import CompletionWriter, RingMessages, RowReads, StepTable, VectorRing
from rtl.stream import Arbiter, CreditQueue, SkidBuffer, StreamFIFO
from sim.host_cpp.formats import header_text
from sim.host_cpp.structures import Shared, definition, fields
from sim.nic_cpp.counters import counters_header

__all__ = ["BETWEEN", "Config", "config_of", "generated_headers", "latencies"]


BETWEEN = 1
"""Cycles from the answer to a register access until the next one is taken."""


def latencies(config: NicConfig) -> dict[str, int]:
    """Return latencies in cycles, and depths, by member of the C++ ``Config``.

    All are attributes and constants of the RTL blocks; `python -m sim bench` measures the
    latencies. All other delays are part of the C++, which models each buffer, FIFO and register on
    a lookup's path by a buffer, FIFO or register of its own.
    """
    return {
        "parser_header": FrameReceiver.LATENCY["last beat of a frame", "its header beat"],
        "header_checked": FrameReceiver.LATENCY["last beat of a frame", "its header's event"],
        "parser_record": PacketParser.LATENCY["header beat", "first record"],
        "adder": FLOAT_ADDER_LATENCY, "reciprocal": RECIPROCAL_LATENCY,
        "divider": COUNT_DIVIDER_LANE_LATENCY, "loop": LOOP,
        **_cache_latencies(), "bags": BAGS, "pooled_beats": OUT_BEATS,
        "hold_window": HoldBuffer.WINDOW, "hold_beats": HoldBuffer.OUT_BEATS,
        "decoded": VectorDecoder.LATENCY["beat", "its first beat of float32"],
        "decoded_beats": (VectorDecoder.OUT_CODES if config.code_vectors
                          else VectorDecoder.OUT_BEATS),
        # From the choice of the first beat, a cycle behind the last beat in.
        "code_first": VectorDecoder.LATENCY[
            "last beat of an int8 vector", "its first beat of float32"] - 1,
        "code_places": CodeReader.PLACES,
        "ring_beats": Pooler.QUEUE_BEATS, "request_fifo": REQUEST_FIFO,
        "node_buffers": packet_buffers(config.nodes), "one_buffers": packet_buffers(1),
        "result_groups": ResultGrouper.GROUPS,
        "credit_share": OwedCredit.SHARE,
        "assembled": FrameAssembler.LATENCY["last payload beat behind its buffer",
                                            "CRC and length, for the header"],
        "assembler_room": FrameAssembler.ROOM,
        "slice_ring": ring_depth(config),
        "slice_loaded": SliceLoader.LATENCY["last vector of a slice", "its announcement"],
        "unique_ways": config.unique_ways, "unique_queue": unique.QUEUE,
        "unique_sets": config.unique_keys // config.unique_ways,
        "credit_item": CreditQueue.LATENCY["item", "the same item"],
        "queue_read": output_queues.READ, "queue_places": output_queues.OUT, "queue_burst": BURST,
        "queue_least": LEAST,
        "index_packets": indices.PACKETS, **_completion_latencies(),
        "rings_lists": VectorRing.LISTS, "rings_outstanding": VectorRing.OUTSTANDING,
        "read_checked": VectorRing.LATENCY["header beat", "the header beat that leaves"],
        "row_read": RowReads.LATENCY["lookup", "its read"], "row_read_places": RowReads.PLACES,
        "register_set": RegisterBlock.LATENCY["write", "answer"] + SETTLING,
        "register_next": RegisterBlock.LATENCY["write", "answer"] + BETWEEN,
        "dot_first": DotArray.latency(config) + Flattener.LATENCY["group's dots", "beat"],
        "dot_reuse": REUSE, "dot_room": DotInteraction.ROOM, **_link_latencies(config.nodes),
        **_bag_latencies(config.link), **_repeat_latencies(config),
    }


def _link_latencies(nodes: int) -> dict[str, int]:
    """Return the latencies of the reliable link, and its sizes."""
    scan, report = ArrivalScan.LATENCY, ReportQueue.LATENCY[
        "event", "its report, beside a delay of 3 or more"]
    moved = scan["event of a packet, nothing else moving", "base, over up to 64 packets"] \
        - StreamFIFO.LATENCY["item", "the same item"]
    room = PoolRoom.LATENCY["beats given back", "room"]
    # The only latency of an acknowledgement in the link.
    given_back, = (cycles for (first, _), cycles in LinkSender.LATENCY.items()
                   if first == "acknowledgement")
    packet = LinkReceiver.LATENCY["admitted packet", "its LINK packet, after the delay"]
    return {
        "link_ahead": intake.AHEAD, "link_blocks": BLOCKS, "link_arrivals": ARRIVALS,
        "link_word": WORD, "link_report": report, "link_moved": moved,
        "link_more": scan["base, over up to 64 packets", "base, over 64 more"],
        # An event follows its packet by a cycle; the base is moved before its bits are gathered.
        "link_gathered": packet - 1 - report - (moved - 1),
        "link_window": WINDOW, "link_pool": POOL_BEATS, "link_spare": FramePool.SPARE,
        "link_freed": given_back + room,
        "link_kept": room + intake.LinkIntake.LATENCY["last payload beat", "the packet is kept"],
        "link_measured": room,
        # A passed deadline is found within :attr:`Deadlines.LATENCY` cycles.
        "link_looked": nodes + 3 + NodeQueue.LATENCY["event", "its node"]
        + Walker.LATENCY["acknowledgement", "question"],
    }


def _bag_latencies(linked: bool) -> dict[str, int]:
    """Return the latencies of bags that pool at their owner, and the sizes of their check.

    linked: bags and their vectors pass :class:`rtl.bags.BufferedLostBags`.
    """
    landing, item = BagLanding.LATENCY, Arbiter.LATENCY["item", "the same item"]
    item -= linked * BufferedLostBags.LATENCY["vector", "the same vector"]
    complete = FillWriter.LATENCY["last beat", "write"] + StreamFIFO.LATENCY[
        "item", "the same item"]
    return {
        "number_back": OwnerPlaces.LATENCY["last beat read", "its place, free"],
        # The id passes a buffer, and the vector the merge with the vectors of the cache.
        "bag_landed": landing["beat of a bag's vector", "the same beat"] - item,
        "bag_id_free": landing["last beat of a bag's vector", "its id, free"] - item,
        "bag_judged": OwnerSplit.LATENCY["key", "its owner"]
        + CreditQueue.LATENCY["item", "the same item"],
        "bag_judged_places": check.AHEAD, "bag_check_segments": check.SEGMENTS,
        "bag_complete": complete, "bag_ages": BagPool.AGES,
        "bag_waits": BagPool.WAITS,
        "bag_answered": OwnerPlaces.LATENCY["last beat of a vector", "its first beat"] - complete,
    }


def _repeat_latencies(config: NicConfig) -> dict[str, int]:
    """Return the latency of the comparison of bags, and its sizes."""
    return {
        # Behind the buffers of slots and segments.
        "repeat_verdict": BagRepeats.LATENCY["slot, or tail of its bag", "the same slot"]
        - SkidBuffer.LATENCY["item", "the same item"],
        "repeat_near": repeats.NEAR, "repeat_places": repeats.QUEUE,
        "repeat_held": repeats.held_segments(config) if config.repeat_positions else 0,
    }


def _completion_latencies() -> dict[str, int]:
    """Return the latencies of the steps that a host opens."""
    writer, table = CompletionWriter.LATENCY, StepTable.LATENCY
    return {
        # Through the writer's buffer, to a step that counts answers.
        "step_opened": RingMessages.LATENCY["beat", "its first step"] + 1
        + table["opening", "answers of the step count"],
        "step_finished": table["last answer", "its step, finished"],
        # The writer sends a cycle after the answer, and its header takes one cycle.
        "flush_answered": RingMessages.LATENCY["beat", "its first flush"]
        + writer["answer to the flush", "header of the word"] - 2,
    }


def _cache_latencies() -> dict[str, int]:
    """Return the latencies of a cache's parts, and depths of its queues."""
    loop, decision = SetLoop.LATENCY, tags.TagPipeline.LATENCY
    lists = scatter_list.ScatterList.LATENCY
    return {
        "tag_phases": decision["lookup", "phases read"], "tag_now": loop["lookup", "now"],
        "tag_result": loop["lookup", "its result"],
        "tag_decision": decision["lookup", "its decision"], "decision_places": tags.QUEUE,
        "append": resolver.Resolver.LATENCY["decision", "append"],
        "operation": resolver.Resolver.LATENCY["decision", "operation"],
        "operation_places": resolver.QUEUE,
        "read": vectors.VectorStore.LATENCY["hit or waiter", "its first beat"],
        "read_places": vectors.BEATS_OUT, "hits_ahead": vectors.HITS_AHEAD,
        "fill_close": FillWriter.LATENCY["last beat", "close of its id"],
        "fill_write": FillWriter.LATENCY["last beat", "write"],
        "list_queued": lists["close", "its list queued"],
        "list_known": lists["list queued", "its ends known"], "lists_ahead": scatter_list.AHEAD,
        "waiter": lists["node read", "its waiter"], "waiter_places": scatter_list.OUT,
        "place_free": CreditQueue.LATENCY["item taken", "its place free"],
        "number_free": FreeList.LATENCY["number given back", "the same number"]
        + NumberPool.LATENCY["number", "free"],
    }


_CONFIG = ("nodes", "query_beats", "sample_slots", "hold_vectors", "lookup_beats",
           "net_payload_beats", "host_payload_beats", "dense_vectors", "remote_ways",
           "remote_in_flight", "local_ways", "local_in_flight", "dedupe_ways",
           "dedupe_in_flight", "scatter_entries", "dot_units", "completion_slots", "wide", "link",
           "owner_bags", "bag_segments", "repeat_words", "repeat_positions", "short_vectors")
_REGISTERS = ("node", "cluster", "vector_beats", "vector_packing", "mean", "interaction", "itself",
              "local_enable", "local_sets", "remote_enable", "remote_sets", "requester_merge",
              "dedupe_enable", "dedupe_sets", "request_batch", "request_timeout",
              "lookup_timeout", "vector_timeout", "result_timeout", "lookup_window", "unique",
              "output_queues",
              "index_timeout", "completion_base_low", "completion_base_high", "completion_flush",
              "gpu_rings", *(f"{ring}_{word}" for ring in ("list", "vector") for word in (
                  "ring_low", "ring_high", "ring_shift", "slot_shift", "index_low")),
              "vector_every", "link_delay", "link_timeout_first", "link_timeout_least",
              "link_timeout_most", "row_reads", "rows_base_low", "rows_base_high",
              "bag_window", "bag_timeout", "bag_batch", "repeats", "value_format", "value_beats",
              "value_packing", "coded")
_LATENCIES = ("parser_header", "parser_record", "adder", "reciprocal", "divider", "loop",
              "tag_phases", "tag_now", "tag_result", "tag_decision", "decision_places", "append",
              "operation", "operation_places", "read", "read_places", "hits_ahead", "fill_close",
              "fill_write", "list_queued", "list_known", "lists_ahead", "waiter", "waiter_places",
              "place_free", "number_free", "bags", "pooled_beats",
              "hold_window", "hold_beats", "ring_beats", "request_fifo", "node_buffers",
              "one_buffers", "result_groups", "credit_share", "assembled", "assembler_room",
              "unique_ways", "unique_queue", "unique_sets", "credit_item", "index_packets",
              "queue_read", "queue_places", "queue_burst", "queue_least",
              "step_opened", "step_finished", "flush_answered", "slice_ring", "slice_loaded",
              "dot_first", "dot_reuse", "dot_room", "rings_lists", "rings_outstanding",
              "read_checked", "register_set", "register_next", "header_checked", "link_ahead",
              "link_blocks", "link_arrivals", "link_word", "link_report", "link_moved",
              "link_more", "link_gathered", "link_window", "link_pool", "link_spare", "link_freed",
              "link_kept", "link_measured", "link_looked", "row_read", "row_read_places",
              "number_back", "bag_landed", "bag_id_free", "bag_judged", "bag_judged_places",
              "bag_check_segments", "bag_complete", "bag_answered", "bag_ages",
              "bag_waits", "repeat_verdict", "repeat_near", "repeat_places", "repeat_held",
              "decoded", "decoded_beats", "code_first", "code_places")


class Config(Shared):
    """The C++ ``Config``: sizes, then registers, then latencies in cycles and depths."""

    _fields_ = fields(c_uint32, *_CONFIG, *_REGISTERS, *_LATENCIES)


def config_of(config: NicConfig, registers: Mapping[str, int]) -> Config:
    """Return the C++ ``Config`` of a NIC with these ``registers``."""
    sizes = {name: getattr(config, name, 0) for name in _CONFIG} | {
        "remote_ways": config.remote_cache_ways, "local_ways": config.local_cache_ways,
        "local_in_flight": config.misses_in_flight, "wide": config.vector_beats > 1}
    beats = registers["vector_beats"]
    of_values = registers.get("value_beats", beats)
    values = dict(registers) | {
        "cluster": registers["nodes"],
        # Sums leave as late as means. With unique delivery, each passed vector is a bag, and the
        # host makes the means.
        "mean": (registers["pooling_mean"] or registers.get("pooling_by_table", 0))
                and not registers.get("unique_delivery", 0),
        # Vectors of several beats do not share beats.
        "vector_packing": registers["vector_packing"] if beats == 1 else 0,
        "value_beats": of_values, "value_packing": 0 if of_values > 1 else registers.get(
            "value_packing", registers["vector_packing"]),
        "coded": registers.get("value_format", 0) >= ValueFormat.INT8,
        "interaction": registers["interaction_mode"],
        "itself": registers["interaction_itself"],
        "local_enable": registers["local_cache_enable"],
        "local_sets": registers["local_cache_sets"],
        "remote_enable": registers["remote_cache_enable"],
        "remote_sets": registers["remote_cache_sets"], "dedupe_sets": config.dedupe_sets,
        "unique": registers.get("unique_delivery", 0),
        "repeats": registers.get("repeats_enable", 0)}
    values = {name: 0 for name in _REGISTERS} | values
    return Config(**{name: sizes[name] for name in _CONFIG},
                  **{name: values[name] for name in _REGISTERS}, **latencies(config))


def generated_headers() -> dict[str, str]:
    """Return the generated headers that the C++ model includes, by file name."""
    return {"formats.h": header_text(), "counters.h": counters_header(), "nic_config.h": "\n".join([
        "// Generated by sim.nic_cpp.layout.", "#pragma once", '#include "formats.h"',
        "namespace ember {", definition(Config), "}", ""])}
