"""Names of systems: the baselines, and the subsets of what a SmartNIC adds."""

__all__ = ["BASELINES", "EN", "PARTS", "SYSTEMS", "canonical", "parts_of"]

BASELINES = ("cpu-mpi", "bl-paper", "bl-tuned")
"""Systems without a SmartNIC."""

PARTS = ("lc", "rc", "sc")
"""What a SmartNIC does besides transport: local cache, remote cache, SmartNIC computation."""

NIC_ALONE, ALL_ON_NIC, FULL = "nic", "all-on-nic", "fs"

EN = "en"
"""EmberNIC with all it can, beyond the paper: see :func:`host.systems.en.en`."""

SYSTEMS = (*BASELINES, NIC_ALONE, "lc", "rc", "sc", "lc+rc", "lc+sc", "rc+sc", "lc+rc+sc",
           ALL_ON_NIC, EN)
"""Every system in its canonical name. ``ga`` is no part of it: it is how mini-batches are formed.
"""


def canonical(name: str, workload: str = "inference") -> tuple[str, bool]:
    """Return the canonical name of a system, and whether the graph algorithm goes with it.

    ``name``: one of `SYSTEMS`, its parts in any order; ``ga`` may be one of them, alone it means
    ``bl-paper``, and may be added to any other (``bl-tuned+ga``). ``fs`` is everything that the
    workload can have: in training the remote cache is left out, since its rows go stale (paper,
    section 4.2).

    Raises ``ValueError`` for a name that is none, and for a remote cache in training.
    """
    parts = name.split("+")
    graph = "ga" in parts
    kept = [part for part in parts if part != "ga"]
    if FULL in kept:
        kept += ["lc", "sc"] if workload == "training" else PARTS
        kept.remove(FULL)
        graph = True
    if kept and all(part in PARTS for part in kept):
        kept = ["+".join(part for part in PARTS if part in kept)]
    found = kept[0] if kept else "bl-paper"
    if len(kept) > 1 or found not in SYSTEMS:
        raise ValueError(f"system must be one of {', '.join(SYSTEMS)}, ga with any of them, or fs, "
                         f"not {name!r}")
    if workload == "training" and "rc" in found.split("+"):
        raise ValueError(f"system must be without rc in training, where its rows go stale, "
                         f"not {name!r}")
    return found, graph


def parts_of(system: str) -> frozenset[str]:
    """Return which of `PARTS` a canonical system has; `EN` has the caches, and the others as it
    chooses."""
    if system == EN:
        return frozenset(("lc", "rc"))
    return frozenset(system.split("+")) & frozenset(PARTS)
