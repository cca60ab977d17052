"""Options of ``en``; every option can be switched off or used alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from host.bounds import check_least
from host.systems.options import (
    BAG_PACES,
    COPIED_ROWS,
    KEY_BYTES,
    PACES,
    POOLS,
    THREADS,
    UPDATES,
    WIRES,
    HostTuning,
    Variants,
    check_places,
    host_variants,
    pace_in_words,
    possible_update,
    wire_in_words,
)

__all__ = ["DELIVER", "EnTuning", "en_variants"]

DELIVER = ("interaction", "pooled", "unique")
"""Data that NICs deliver: interaction results, a pooled vector per bag, or each distinct vector
once.
"""


@dataclass(frozen=True)
class EnTuning(HostTuning):
    """Options of EN that FS lacks.

    Members
    -------
    ring: a resident kernel serves request lists from a ring in GPU memory and permanently occupies
        its multiprocessors. Without ``ring`` and ``reads``, the NIC's driver launches a gather per
        list.
    reads: the NIC reads rows from GPU memory itself, if the tables fit its BAR; excludes ``ring``.
    completion: the NIC writes a word to GPU memory after its last result, and the graph of a
        mini-batch waits for it; otherwise the host thread waits and launches another graph.
    pace_us: least microseconds from a launch of gathers by the NIC's driver to the next; fewer
        gathers leave more of the GPU to other kernels. 0 launches as soon as the driver's thread is
        free. Inference only.
    patient: packets of lookups and vectors between NICs wait for a round trip of the network to be
        full, which takes fewer headers; otherwise the NIC's timeouts apply. Inference only.
    jumbo: NICs send packets of up to 9,000 bytes, in place of 1,500. Inference only.
    deliver: one of `DELIVER`. Training requires vectors, so it excludes ``interaction``.
    wire: format of vectors between nodes, one of `WIRES`. Unless it is float32, GPUs convert:
        kernels that gather rows or pool bags write vectors in this format, which NICs carry without
        an operation on values. ``unique`` only; excludes ``reads``, because a NIC that reads rows
        reads float32. In training, gradients then have bfloat16, and all tables pool at their
        owner, whose GPU updates them: NICs add float32. FS has float32, because its NICs pool.
    copied_rows: every GPU copies each table of at most this many rows, and the NIC never sees its
        keys. Inference only; excludes ``interaction``.
    pool: node that pools the bags of a table, one of `POOLS`; ``auto`` chooses for each table.
        A launched kernel pools the bags, so that ``ring`` is excluded.
    update: place that updates the rows of these tables in training, one of `UPDATES`.
    own_at_gpu: the GPU reads the rows that its own node's samples need of tables that pool at the
        requester and that the node holds whole, as in ``bl-tuned``; the NIC looks up rows of other
        nodes. Inference only; no effect with ``interaction``, and if the NIC serves several GPUs.
    bags_once: equal bags of a table in consecutive samples of a share are sent, delivered and
        pooled once, as in ``bl-tuned``: the GPU copies the vector to each of the bags, by an index
        per bag, and in training adds their gradients. Excludes ``interaction``.
    merge: a NIC sends identical keys in flight to an owner once; ``unique`` already merges within a
        share.
    queues: lookups wait for credit in a queue per owner, so a slow owner does not delay others.
        Costs some cycles per lookup; the default is off.
    dense: the bottom MLP's last kernel notifies the NIC that dense vectors are ready; otherwise the
        host thread does. Applies to ``interaction`` with ``completion``.
    sizes: buffer sizes equal latency times rate (:mod:`sim.evaluation.en_nics`).
    relaunch: the resident kernel launches the graphs, and the host thread only stores a word. Not
        measured; the default is off.
    """

    ring: bool = True
    reads: bool = False
    completion: bool = True
    pace_us: int = 0
    patient: bool = False
    jumbo: bool = False
    deliver: str = "unique"
    wire: str = "float32"
    copied_rows: int = 0
    pool: str = POOLS[0]
    update: str = UPDATES[0]
    own_at_gpu: bool = True
    bags_once: bool = False
    merge: bool = True
    queues: bool = False
    dense: bool = True
    sizes: bool = True
    relaunch: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("deliver", DELIVER), ("wire", tuple(WIRES))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, "
                                 f"not {getattr(self, name)!r}")
        check_places(self.pool, self.update)
        check_least(self, copied_rows=0, pace_us=0)

    def possible(self, training: bool = False) -> bool:
        """Return whether the options are consistent and not equivalent to another tuning."""
        return not ((self.deliver == "interaction" and (training or self.copied_rows > 0))
                    or (training and (self.copied_rows > 0 or self.relaunch or self.patient
                                     or self.jumbo))
                    or (self.bags_once and self.deliver == "interaction")
                    or (self.wire != "float32" and (
                        self.reads or self.deliver != "unique"
                        or (training and (self.pool == POOLS[0] or self.update != UPDATES[0]))))
                    or (self.ring and self.reads)
                    or (self.pool != POOLS[0] and self.ring)
                    or not possible_update(self.pool, self.update, training)
                    or (self.pace_us > 0 and (training or not self.driven))
                    or (self.threads > 1 and self.driven)
                    or (self.communicators > 1 and not training)
                    or (self.relaunch and not (self.ring and self.completion and self.dense)))

    @property
    def driven(self) -> bool:
        """Whether the NIC's driver launches gathers or kernels that pool bags, in a thread of its
        own."""
        return not (self.ring or self.reads) or self.pool != POOLS[0]

    def words(self) -> list[str]:
        """Return the active options as texts."""
        rows = self.copied_rows
        return [*super().words(), f"deliver {self.deliver}",
                *wire_in_words(self.wire),
                *pace_in_words(self.pace_us),
                *[f"copies of tables of at most {rows:,} rows"] * (rows > 0)]


def en_variants(training: bool, key_bytes: int = KEY_BYTES[0],
                copied_rows: Sequence[int] = COPIED_ROWS,
                threads: int = THREADS, pools: Sequence[str] = POOLS[:1],
                repeats: bool = False) -> tuple[Variants, ...]:
    """Return the alternatives that EN searches: the read path with the place of pooling,
    ``pace_us``, ``deliver``, ``update``, ``bags_once``, ``copied_rows`` and the options of every
    system. Other members keep their defaults.

    key_bytes: bytes of a key. copied_rows: limits on the rows of copied tables.
    threads: most threads that call. pools: of `POOLS`. repeats: whether bags repeat.
    """
    return (tuple({"ring": ring, "reads": reads, "pool": pool} for pool in pools
                  for ring, reads in ((True, False), (False, False), (False, True))
                  if pool == POOLS[0] or not ring),
            tuple({"pace_us": pace} for pace in ((0,) if training else (0, *PACES, *(
                BAG_PACES if any(pool != POOLS[0] for pool in pools) else ())))),
            tuple({"deliver": deliver} for deliver in DELIVER),
            tuple({"update": place} for place in (UPDATES if training and any(
                pool != POOLS[0] for pool in pools) else UPDATES[:1])),
            tuple({"bags_once": once} for once in ((False, True) if repeats else (False,))),
            tuple({"copied_rows": rows} for rows in (copied_rows[:1] if training else copied_rows)),
            tuple({"communicators": count} for count in ((1, 2) if training else (1,))),
            *host_variants(threads, key_bytes))
