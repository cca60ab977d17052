"""Names of what a modelled NIC counts, in the order in which it gives them."""

__all__ = ["COUNTED"]


def _of(block: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{block}.{name}" for name in names)


_CACHE = ("accesses", "hits", "hits_pending", "misses", "conflict_misses")
_CACHE_END = ("evictions", "bad_fills", "beats_in", "beats_out")
_PACKAGER = ("records", "packets", "full", "timeouts", "step_changes")

COUNTED = (
    *_of("host_parser", "packets", "beats"), *_of("net_parser", "packets", "beats"),
    *_of("query_checker", "samples", "keys", "empty_bags"), *_of("dispatcher", "local", "remote"),
    *_of("remote_cache", *_CACHE, "unmerged", *_CACHE_END),
    *_of("local_cache", *_CACHE, *_CACHE_END),
    *_of("dedupe", "requests", "unique", "merged", "conflict_misses", "bad_fills", "beats_in",
         "beats_out", "retired_early"),
    *_of("lookup_packager", *_PACKAGER), *_of("request_packager", *_PACKAGER),
    *_of("vector_packager", "vectors", "beats", "packets", "full", "timeouts"),
    *_of("lookup_receiver", "beats", "records"), "lookup_check.requests",
    *_of("hold_buffer", "reserved", "vectors_in", "beats_out"),
    *_of("pooler", "beats_in", "beats_out", "adds"),
    *_of("result_packager", "samples", "packets", "vectors"),
    *_of("dense_ring", "reserved", "vectors_in", "beats_out", "packets"),
    *_of("result_frames", "results", "packets"), "host_reporter.credits",
    *_of("net_assembler", "packets", "beats"), *_of("host_assembler", "packets", "beats"),
)
"""The same counts as the registers of those names."""
