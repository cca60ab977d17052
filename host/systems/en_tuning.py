"""The options of ``en``, each of which can be left out or stand alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

from gen.base.numbers import integer
from host.systems.options import COPIED_ROWS

__all__ = ["DELIVER", "EnTuning", "en_tunings", "fixed_of", "options_of"]

DELIVER = ("interaction", "pooled", "unique")
"""What NICs deliver: results of the interaction, a vector a bag, or each different vector once."""


@dataclass(frozen=True)
class EnTuning:
    """What EN has of the options that FS lacks.

    Members
    -------
    ring: a resident kernel of the GPU serves request lists from a ring in its memory, and keeps its
        multiprocessors from all others; otherwise the NIC's driver launches a gather for each, but
        with ``reads``.
    reads: the NIC reads rows from GPU memory itself, where tables fit what it sees of that; instead
        of ``ring``.
    completion: behind its last result the NIC writes a word to GPU memory, for which the graph of a
        mini-batch waits; otherwise the host's thread waits, and launches another graph.
    deliver: one of `DELIVER`. In training the GPU needs vectors, so that ``interaction`` is out.
    copied_rows: every GPU has a copy of each table of at most so many rows, whose keys its NIC
        never sees; in inference, and where the NIC does not compute the interaction.
    merge: a NIC asks an owner for identical keys in flight once; ``unique`` finds those of a share
        before.
    queues: lookups wait for the credit of their owner in a queue of their own, so that a slow owner
        holds back no others. Where none is slow it costs some cycles a lookup, so it is never on by
        itself.
    dense: the bottom MLP's last kernel tells the NIC that dense vectors are there; otherwise the
        host's thread waits and tells it. Of ``interaction``, and with completions.
    sizes: buffers as large as latency times rate asks for (:mod:`sim.evaluation.en`).
    relaunch: the resident kernel launches a mini-batch's graphs from the GPU, so that the host's
        thread only stores a word; nobody has measured it here, so it is never on by itself.
    """

    ring: bool = True
    reads: bool = False
    completion: bool = True
    deliver: str = "unique"
    copied_rows: int = 0
    merge: bool = True
    queues: bool = False
    dense: bool = True
    sizes: bool = True
    relaunch: bool = False

    def __post_init__(self) -> None:
        if self.deliver not in DELIVER:
            raise ValueError(f"deliver must be one of {', '.join(DELIVER)}, not {self.deliver!r}")
        if self.copied_rows < 0:
            raise ValueError(f"copied_rows must be at least 0, not {self.copied_rows!r}")

    def possible(self, training: bool = False) -> bool:
        """Whether its members go together in a workload, and no other tuning is the same."""
        return not ((self.deliver == "interaction" and (training or self.copied_rows > 0))
                    or (training and (self.copied_rows > 0 or self.relaunch))
                    or (self.ring and self.reads)
                    or (self.relaunch and not (self.ring and self.completion and self.dense)))

    def in_words(self) -> str:
        """Return what it uses."""
        used = [name for name, value in vars(self).items() if value is True]
        used.append(f"deliver {self.deliver}")
        used += [f"copies of tables of at most {self.copied_rows:,} rows"] * (self.copied_rows > 0)
        return ", ".join(used)


def options_of(tuning: EnTuning) -> tuple[str, ...]:
    """Return the ``name=value`` texts that fix every member as ``tuning`` has it."""
    return tuple(f"{name}={str(value).lower() if isinstance(value, bool) else value}"
                 for name, value in vars(tuning).items())


def fixed_of(options: Sequence[str]) -> dict[str, Any]:
    """Return the members that ``name=value`` texts fix.

    Raises ``ValueError`` for an unknown name or a value of another kind.
    """
    known = {field.name: field.default for field in fields(EnTuning)}
    found: dict[str, Any] = {}
    for option in options:
        name, _, text = option.partition("=")
        if name not in known:
            raise ValueError(f"en must name one of {', '.join(known)}, not {name!r}")
        default = known[name]
        if isinstance(default, bool):
            if text not in ("true", "false"):
                raise ValueError(f"{name} must be true or false, not {text!r}")
            found[name] = text == "true"
        elif isinstance(default, int):
            try:
                found[name] = integer(text)
            except ValueError as error:
                raise ValueError(f"{name} must be a number of rows: {error}") from None
        else:
            found[name] = text
    replace(EnTuning(), **found)  # checks the values
    return found


def en_tunings(training: bool, fixed: Mapping[str, Any]) -> tuple[EnTuning, ...]:
    """Return the tunings that EN chooses from: what is delivered, which tables are copied, and
    whether a ring is worth the multiprocessors of its kernel, or the NIC reads rows itself, where
    ``fixed`` does not say; all else is on unless ``fixed`` says otherwise."""
    served = ((True, False), (False, False), (False, True))
    every = (EnTuning(**{"ring": ring, "reads": reads, "deliver": deliver, "copied_rows": rows}
                      | dict(fixed))
             for (ring, reads), deliver, rows in product(served, DELIVER, COPIED_ROWS))
    found = tuple(dict.fromkeys(each for each in every if each.possible(training)))
    if not found:
        raise ValueError(f"en must have options that go together in "
                         f"{'training' if training else 'inference'}, not {dict(fixed)!r}")
    return found
