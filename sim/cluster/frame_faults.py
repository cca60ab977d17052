"""Faults of frames between NICs: lost, duplicated, corrupted, late."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from host.hashing import mix64_int
from rtl.formats import Opcode
from sim.job.frame_faults import ANY, FOREVER, FaultKind, FrameRule, Injected
from sim.nic.ports import DATA_WORDS

__all__ = ["FrameFaults", "injected_rows", "lost_between", "lost_frames", "remedy"]

_LOSES = (FaultKind.DROP, FaultKind.DOWN)
_UNDELIVERED = (*_LOSES, FaultKind.CORRUPT)
_CHANGES = (FaultKind.REORDER, FaultKind.CORRUPT, FaultKind.DELAY)


class FrameFaults:
    """Decides for each frame which faults happen to it.

    A decision is a hash of the seed, the source, the destination, the number of the frame between
    the two, and the index of the rule. There is no random state: a decision does not depend on
    threads, on the length of quanta, or on faults of other frames.

    ``sim/host_cpp/frame_faults.h`` does the same in C++.

    Parameters: ``rules``; ``seed``. Members: ``injected``, faults injected.
    """

    def __init__(self, rules: Sequence[FrameRule], seed: int):
        self.injected: Injected = Counter()
        self._rules, self._seed = rules, seed
        self._frames: Counter[int] = Counter()
        self._seen: list[Counter[int]] = [Counter() for _ in rules]

    def apply(self, cycle: int, source: int, destination: int, opcode: int,
              frame: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Return the copies of a frame that are not lost, each with the cycle in which it is
        forwarded.

        cycle: cycle in which the frame left ``source``.
        frame: its beats, uint32 ``[n, BEAT_WORDS]``.

        Call it for the frames of each source in the order in which they leave.
        """
        pair = source << 32 | destination
        self._frames[pair] += 1
        number = self._frames[pair]
        numbers: dict[int, int] = {}
        for place, rule in enumerate(self._rules):
            if (rule.source in (ANY, source) and rule.destination in (ANY, destination)
                    and rule.opcode in (ANY, opcode)):
                self._seen[place][pair] += 1
                numbers[place] = self._seen[place][pair]

        def hits(kinds: Sequence[FaultKind], copy: int) -> list[int]:
            return [place for place, own in numbers.items() if self._rules[place].kind in kinds
                    and self._hit(place, cycle, pair, number, own, copy)]

        def count(kind: int, frames: int = 1) -> None:
            self.injected[kind, source, destination, opcode] += frames

        for place in hits(_LOSES, 0):
            count(self._rules[place].kind)
            return []
        copies = 1 + len(hits((FaultKind.DUPLICATE,), 0))
        if copies > 1:
            count(FaultKind.DUPLICATE, copies - 1)
        arriving = []
        for copy in range(copies):
            late, changed = 0, frame
            for place in hits(_CHANGES, copy):
                rule = self._rules[place]
                count(rule.kind)
                amount = self._draw(place, pair, number, 2 * copy + 1)
                if rule.kind == FaultKind.CORRUPT:
                    word, bit = divmod(amount % (len(frame) * DATA_WORDS * 32), 32)
                    changed = changed.copy()
                    changed[divmod(word, DATA_WORDS)] ^= np.uint32(1 << bit)
                else:
                    late += (rule.cycles if rule.kind == FaultKind.DELAY
                             else 1 + amount % rule.cycles)
            arriving.append((cycle + late, changed))
        return arriving

    def _draw(self, place: int, pair: int, number: int, purpose: int) -> int:
        return mix64_int(self._seed, pair, number, place, purpose)

    def _hit(self, place: int, cycle: int, pair: int, number: int, own: int, copy: int) -> bool:
        rule = self._rules[place]
        if rule.kind == FaultKind.DOWN:
            return rule.first <= cycle < rule.end
        if rule.frames:
            return copy == 0 and any(low <= own <= high for low, high in rule.frames)
        return (rule.threshold == FOREVER
                or self._draw(place, pair, number, 2 * copy) < rule.threshold)


def injected_rows(injected: Injected) -> list[dict]:
    """Return injected faults as rows of a report, in the order of kind, source, destination."""
    return [{"kind": FaultKind(kind).name.lower(), "source": source, "destination": destination,
             "opcode": _name(opcode), "frames": frames}
            for (kind, source, destination, opcode), frames in sorted(injected.items())]


def lost_frames(injected: Injected, full: int) -> str:
    """Return in words which frames were lost, or corrupted and rejected, and how many a full queue
    dropped; empty if all arrived."""
    lost: Counter[str] = Counter()
    for (kind, source, destination, opcode), frames in sorted(injected.items()):
        if kind in _UNDELIVERED:
            how = "corrupted" if kind == FaultKind.CORRUPT else "lost"
            lost[f"{_name(opcode)} of node {source} to {destination} {how}"] += frames
    if full:
        lost["of any kind, dropped by a full queue of the switch"] += full
    parts = [f"{frames} {what}" for what, frames in lost.most_common(_NAMED)]
    if len(lost) > _NAMED:
        parts.append(f"{sum(lost.values()) - sum(n for _, n in lost.most_common(_NAMED))} others")
    return f"frames that the network did not deliver: {', '.join(parts)}" if parts else ""


def remedy(injected: int, full: int, linked: bool, modelled: bool) -> str:
    """Return advice for a run over a network that loses or changes frames; empty if NICs have a
    link.

    injected: frames changed by faults.
    full: frames that a full queue dropped.
    """
    if linked or not (injected or full):
        return ""
    return (f"NICs without a reliable link cannot send a frame again: add "
            f"{'--fidelity rtl ' * modelled}--set link=true")


def lost_between(injected: Injected, source: int, destination: int, *opcodes: Opcode) -> int:
    """Return how many frames with ``opcodes`` the network lost between two nodes."""
    return sum(injected.get((kind, source, destination, opcode), 0)
               for kind in _UNDELIVERED for opcode in opcodes)


_NAMED = 4
"""Most kinds of lost frames that a line names."""


def _name(opcode: int) -> str:
    try:
        return Opcode(opcode).name
    except ValueError:
        return f"{opcode:#x}"
