"""The attacks on inference as a table: ``python -m tests.wire.table [--tries 80]``.

Each try runs 48 samples on 4 NICs of ``tiny``, with another seed of the attack.
"""

import argparse
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from rtl.formats import Opcode
from tests.sim.linked import LINKED
from tests.wire.attacked import Attack, run_attacked
from tests.wire.attacks import (
    GuessedPlaces,
    LivePlaces,
    LookupsAsNode,
    NotOwned,
    SeenPlaces,
    Twice,
)
from tests.wire.forging import as_node, as_stranger

__all__ = ["REFUSED", "ROWS", "Row"]

REFUSED = ("net_receiver.foreign", "remote_cache.bad_fills", "lookup_check.bad_table",
           "lookup_check.bad_row", "lookup_check.bad_owner", "lookup_receiver.over_credit",
           "link_receiver.duplicates", "link_receiver.outside")
"""Counters of rejected frames."""


class Row(NamedTuple):
    """An attack: its name, the attacker, a function from a seed to the attack, and settings of the
    NICs."""

    name: str
    who: str
    attack: Callable[[int], Attack]
    settings: tuple[str, ...] = ()


STRANGER, PEER = "a stranger", "a peer"
FORGER = "who sends with a peer's addresses"

ROWS = (
    Row("lookups in a peer's name", STRANGER, partial(LookupsAsNode, address=as_stranger)),
    Row("lookups in a peer's name", FORGER, partial(LookupsAsNode, address=as_node)),
    Row("176 lookups of rows that are not owned", STRANGER,
        partial(NotOwned, address=as_stranger)),
    Row("176 lookups of rows that are not owned", FORGER, partial(NotOwned, address=as_node)),
    Row("vectors for a lap that is over", STRANGER, partial(GuessedPlaces, address=as_stranger)),
    Row("vectors for a lap that is over", FORGER, partial(GuessedPlaces, address=as_node)),
    Row("vectors for the first lap, guessed", STRANGER,
        partial(GuessedPlaces, address=as_stranger, lap=1)),
    Row("vectors for the first lap, guessed", FORGER,
        partial(GuessedPlaces, address=as_node, lap=1)),
    Row("vectors with the places just named", STRANGER,
        partial(SeenPlaces, address=as_stranger)),
    Row("vectors with the places just named", PEER,
        partial(SeenPlaces, address=as_node, node=-1)),
    Row("vectors with the places just named", FORGER, partial(SeenPlaces, address=as_node)),
    Row("lookups that name live places", STRANGER, partial(LivePlaces, address=as_stranger)),
    Row("lookups that name live places", FORGER, partial(LivePlaces, address=as_node)),
    Row("an honest frame of vectors twice", "the network", Twice),
    Row("an honest frame of lookups twice", "the network",
        partial(Twice, opcode=Opcode.LOOKUPS)),
    Row("an honest frame of vectors twice, with a link", "the network", Twice, LINKED),
    Row("an honest frame of lookups twice, with a link", "the network",
        partial(Twice, opcode=Opcode.LOOKUPS), LINKED),
)


def _line(row: Row, tries: int) -> str:
    kinds, refused, sent = Counter(), Counter(), 0
    for seed in range(tries):
        outcome = run_attacked(row.attack(seed), settings=row.settings)
        kinds[outcome.kind] += 1
        sent += outcome.sent
        refused.update({name: outcome.counters[name] for name in REFUSED
                        if outcome.counters.get(name)})
    counted = ", ".join(f"{count} `{name}`" for name, count in refused.items()) or "nothing"
    return (f"| {row.name} | {row.who} | {kinds['same']} | {kinds['stuck']} | {kinds['wrong']} | "
            f"{sent} | {counted} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=80)
    parser.add_argument("--only", default="", help="rows whose name and sender contain this")
    given = parser.parse_args()
    print("| attack | by | same bits | stuck | wrong | frames sent | counted |", flush=True)
    print("|---|---|---|---|---|---|---|", flush=True)
    for row in ROWS:
        if given.only in f"{row.name} {row.who}":
            print(_line(row, given.tries), flush=True)


if __name__ == "__main__":
    main()
