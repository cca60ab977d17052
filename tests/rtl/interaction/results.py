"""Results of samples, and their packets, in plain Python."""

import random
from collections.abc import Iterable

from rtl.formats import Opcode

__all__ = ["frames_of", "parsed_results", "random_results", "result_items"]


def random_results(seed: int, lengths: Iterable[int], steps: Iterable[int]) -> list:
    """Return results: sample number, step, and their beats."""
    rng = random.Random(seed)
    return [(rng.getrandbits(32), step, [rng.getrandbits(512) for _ in range(length)])
            for length, step in zip(lengths, steps, strict=True)]


def result_items(results: list) -> list[dict]:
    """Return the beats of ``results`` as the interaction outputs them."""
    return [{"data": beat, "last": int(n == len(beats) - 1), "sample": sample, "step": step}
            for sample, step, beats in results for n, beat in enumerate(beats)]


def frames_of(results: list, most: int) -> list[tuple[int, int, int, list[int]]]:
    """Return the packets of at most ``most`` payload beats, without timeouts, all closed at the
    end.

    A packet is its opcode, step, count and beats.
    """
    packets: list[tuple[int, int, int, list[int]]] = []
    group: list = []

    def close() -> None:
        if group:
            tags = [sample for sample, _, _ in group]
            tag_beats = [sum(tag << 32 * k for k, tag in enumerate(tags[first:first + 16]))
                         for first in range(0, len(tags), 16)]
            packets.append((Opcode.RESULTS, group[0][1], len(group),
                            [*tag_beats, *(beat for _, _, beats in group for beat in beats)]))
            group.clear()

    def size(number: int, length: int) -> int:
        return -(-number // 16) + number * length

    for sample, step, beats in results:
        if group and (group[0][1] != step or len(group[0][2]) != len(beats)):
            close()
        if len(beats) > most - 1:
            for first in range(0, len(beats), most - 1):
                part = beats[first:first + most - 1]
                last = first + most - 1 >= len(beats)
                packets.append((Opcode.RESULT_PART, step, len(part),
                                [sample | first << 32 | last << 48, *part]))
            continue
        group.append((sample, step, beats))
        if size(len(group) + 1, len(beats)) > most:
            close()
    close()
    return packets


def parsed_results(headers: list[dict], payload: list[dict]) -> list:
    """Parse packets, for any reason of their closing; return the results."""
    results, beats, long = [], iter(payload), []
    for header in headers:
        packet = [next(beats)]
        while not packet[-1]["last"]:
            packet.append(next(beats))
        data = [beat["data"] for beat in packet]
        if header["opcode"] == Opcode.RESULT_PART:
            first, last = data[0] >> 32 & 0xFFFF, data[0] >> 48
            assert first == len(long) and header["count"] == len(data) - 1
            long += data[1:]
            if last:
                results.append((data[0] & 0xFFFFFFFF, header["step"], long))
                long = []
            continue
        assert header["opcode"] == Opcode.RESULTS
        tag_count = -(-header["count"] // 16)
        length, rest = divmod(len(data) - tag_count, header["count"])
        assert length and not rest
        for k in range(header["count"]):
            start = tag_count + length * k
            results.append((data[k // 16] >> 32 * (k % 16) & 0xFFFFFFFF, header["step"],
                            data[start:start + length]))
    assert not long and next(beats, None) is None
    return results
