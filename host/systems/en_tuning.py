"""Options of ``en``; every option can be switched off or used alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

from gen.base.numbers import integer
from host.systems.options import COPIED_ROWS

__all__ = ["DELIVER", "EnTuning", "en_tunings", "fixed_of", "options_of"]

DELIVER = ("interaction", "pooled", "unique")
"""Data that NICs deliver: interaction results, a pooled vector per bag, or each distinct vector
once.
"""


@dataclass(frozen=True)
class EnTuning:
    """Options of EN that FS lacks.

    Members
    -------
    ring: a resident kernel serves request lists from a ring in GPU memory and permanently occupies
        its multiprocessors. Without ``ring`` and ``reads``, the NIC's driver launches a gather per
        list.
    reads: the NIC reads rows from GPU memory itself, if the tables fit its BAR; excludes ``ring``.
    completion: the NIC writes a word to GPU memory after its last result, and the graph of a
        mini-batch waits for it; otherwise the host thread waits and launches another graph.
    deliver: one of `DELIVER`. Training requires vectors, so it excludes ``interaction``.
    copied_rows: every GPU copies each table of at most this many rows, and the NIC never sees its
        keys. Inference only; excludes ``interaction``.
    merge: a NIC sends identical keys in flight to an owner once; ``unique`` already merges within a
        share.
    queues: lookups wait for credit in a queue per owner, so a slow owner does not delay others.
        Costs some cycles per lookup; the default is off.
    dense: the bottom MLP's last kernel notifies the NIC that dense vectors are ready; otherwise the
        host thread does. Applies to ``interaction`` with ``completion``.
    sizes: buffer sizes equal latency times rate (:mod:`sim.evaluation.en`).
    relaunch: the resident kernel launches the graphs, and the host thread only stores a word. Not
        measured; the default is off.
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
        """Return whether the options are consistent and not equivalent to another tuning."""
        return not ((self.deliver == "interaction" and (training or self.copied_rows > 0))
                    or (training and (self.copied_rows > 0 or self.relaunch))
                    or (self.ring and self.reads)
                    or (self.relaunch and not (self.ring and self.completion and self.dense)))

    def in_words(self) -> str:
        """Return the active options as text."""
        used = [name for name, value in vars(self).items() if value is True]
        used.append(f"deliver {self.deliver}")
        used += [f"copies of tables of at most {self.copied_rows:,} rows"] * (self.copied_rows > 0)
        return ", ".join(used)


def options_of(tuning: EnTuning) -> tuple[str, ...]:
    """Return the ``name=value`` texts that fix every member of ``tuning``."""
    return tuple(f"{name}={str(value).lower() if isinstance(value, bool) else value}"
                 for name, value in vars(tuning).items())


def fixed_of(options: Sequence[str]) -> dict[str, Any]:
    """Return the members that ``name=value`` texts fix.

    Raises ``ValueError`` for an unknown name or a value of the wrong type.
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
    """Return the tunings that EN searches.

    The search varies ``deliver``, ``copied_rows``, ``ring`` and ``reads`` unless ``fixed`` sets
    them. Other members keep their defaults or the values in ``fixed``. Raises ``ValueError`` if no
    consistent tuning is left.
    """
    served = ((True, False), (False, False), (False, True))
    every = (EnTuning(**{"ring": ring, "reads": reads, "deliver": deliver, "copied_rows": rows}
                      | dict(fixed))
             for (ring, reads), deliver, rows in product(served, DELIVER, COPIED_ROWS))
    found = tuple(dict.fromkeys(each for each in every if each.possible(training)))
    if not found:
        raise ValueError(f"en must have consistent options in "
                         f"{'training' if training else 'inference'}, not {dict(fixed)!r}")
    return found
