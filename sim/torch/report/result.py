"""The report of a PyTorch program on NICs, as plain values."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

import torch

from host.wire.indices import MOST_INDICES
from sim.torch.lookups.dense import Chains
from sim.torch.lookups.record import COUNTED, Kept
from sim.torch.options import TorchOptions
from sim.torch.processes.merge import Seen, differences, together
from sim.torch.systems import Setting, no_times, times_of
from sim.torch.values.written import called

__all__ = ["failures", "result_of"]

_KINDS = {"inference": False, "training": True}


def result_of(parts: Sequence[Seen], options: TorchOptions, *, seconds: float,
              script: str | None, arguments: Sequence[str], ended: str | None = None,
              timed: bool = True) -> dict:
    """Return the report of an ended program.

    parts: observations of each process.
    seconds: wall time of the program.
    ended: reason of an early end, in words; None after a normal end.
    timed: True to time the systems.
    """
    seen = together(parts)
    record, rtl = seen.record, options.fidelity == "rtl"
    setting = replace(options.timed, owners=_owners(seen))
    systems = {kind: _times(record.alike(trained), seen.chains, trained, setting) if timed else
               no_times(len(record.recent[trained]), "no system was timed: the program failed")
               for kind, trained in _KINDS.items() if record.recent[trained]}
    if not rtl:
        for times in systems.values():
            record.cached(_modelled(times, options.system))
    return {
        "schema": "embernic/torch/1",
        "script": script, "arguments": list(arguments), "exit_status": seen.exit_status,
        "ended": ended,
        "options": options.to_json(), "torch": str(torch.__version__),
        "numpy": version("numpy"), "wall_seconds": seconds,
        "tables": seen.tables,
        "processes": [_process(part) for part in parts],
        "steps": record.steps,
        "mini_batches": {kind: _totals([step for step in record.steps
                                        if step["workload"] == kind]) for kind in _KINDS
                         if any(step["workload"] == kind for step in record.steps)},
        "values": {"source": "rtl" if rtl else "numerics",
                   "bit_identical": (not seen.verdicts["different"] and
                                     not seen.written.different) if rtl else None,
                   "results": seen.verdicts if rtl else None,
                   "against_pytorch": seen.comparison.to_json(),
                   "weighted_calls": seen.weighted},
        "nics": _nics(seen) if rtl else None,
        "gradients": {"bags": seen.gradients, "optimizer_on": options.optimizer_on,
                      "fused": dict(seen.updates),
                      "nic": seen.written.to_json() if options.optimizer_on == "nic" else None},
        "not_caught": [{"place": place, "what": what, "count": count}
                       for (place, what), count in seen.missed.items()],
        "collectives": seen.collectives,
        "systems": systems,
        "notes": [*([f"the report ends early: {ended}"] * bool(ended)),
                  *_notes(seen, parts, options, systems)],
    }


def failures(result: dict) -> list[str]:
    """Return a line for each error of the NICs."""
    wrong, rows = result["values"]["results"], result["gradients"]["nic"]
    return [f"{found['different']:,} {what} differ from the numerics"
            for found, what in ((wrong, "samples"), (rows, "rows"))
            if found and found["different"]]


def _owners(seen: Seen) -> tuple[int, ...] | None:
    """Return the node of each table; None if the processes have copies of the same tables."""
    found = tuple(table["node"] for table in seen.tables)
    return None if None in found else found


def _process(seen: Seen) -> dict:
    """Return the report of a process."""
    return {"rank": seen.rank, "tables": len(seen.tables), "exit_status": seen.exit_status,
            "lookups": sum(step["lookups"] for step in seen.record.steps)}


def _times(kept: list[Kept], chains: Chains, trained: bool, setting: Setting) -> dict:
    """Return the times of each system.

    If settings do not fit the program, the result contains the reason instead of times.
    """
    try:
        return times_of(kept, chains, trained, setting)
    except ValueError as error:
        return no_times(len(kept), f"no system was timed: {error}")


def _modelled(times: dict, system: str) -> dict[tuple[int, str], int]:
    """Return counts of the local caches of a system's modelled NICs, by mini-batch and name.

    Empty for a system without local caches.
    """
    return {(number, name): count for row in times["rows"]
            if row["system"] == system and row["local_cache"]
            for name, counts in row["local_cache"].items()
            for number, count in zip(times["steps"], counts)}


def _totals(steps: list[dict]) -> dict:
    """Return sums over mini-batches; cache counts cover only mini-batches with counts."""
    counted = [step for step in steps if step["local_cache_accesses"] is not None]
    return {"count": len(steps)} | {
        name: sum(step[name] for step in steps)
        for name in ("samples", "bags", "lookups", "unique", "bytes")} | {
        "local_cache": {"mini_batches": len(counted)} | {
            name: sum(step[f"local_cache_{name}"] for step in counted) for name in COUNTED}}


def _nics(seen: Seen) -> dict:
    """Return counts and times of the NICs."""
    return {"mini_batches": len(seen.latencies), "latencies_us": seen.latencies,
            "updates_us": seen.row_times,
            "uncached": seen.uncached, "counts": dict(seen.counts),
            "resets": dict(seen.resets)}


def _notes(seen: Seen, parts: Sequence[Seen], options: TorchOptions,
           systems: dict) -> list[str]:
    """Return remarks that correct likely misreadings of the report."""
    notes, written = differences(parts), seen.written
    if written.rows:
        source = "their RTL" if options.fidelity == "rtl" else "the bit-exact numerics"
        notes.append(f"the NICs' {called(written.to_json()['optimizer'])}, by {source}, wrote "
                     f"{written.rows:,} rows; {written.equal:,} rows equal those of the program's "
                     f"optimizer bit for bit, the others differ by at most {written.most:.1e} of "
                     f"their largest value")
    if written.states:
        notes.append(f"it wrote {written.states:,} states of rows; {written.equal_states:,} states "
                     f"equal those of the program's optimizer bit for bit, the others differ by at "
                     f"most {written.ulp:,} ulp")
    if "rowwise-adagrad" in written.optimizers:
        notes.append("training times assume that the systems update rows with SGD")
    if seen.gradients and (seen.updates or not written.rows):
        fused = ", ".join(f"{name} {count:,} times" for name, count in seen.updates.items())
        whose = f"FBGEMM's fused optimizer ({fused})" if fused else "PyTorch's optimizer"
        notes.append(f"{whose} on the host wrote the rows; training times assume that the systems "
                     f"update rows themselves, with SGD")
    if seen.weighted:
        notes.append(f"the host multiplied vectors by per-sample weights: {seen.weighted:,} "
                     f"call{'s' * (seen.weighted != 1)}")
    if seen.uncached:
        notes.append(f"the NICs' caches were off in {seen.uncached:,} mini-batches, because "
                     f"PyTorch had changed rows")
    if seen.pooled and options.system == "EN":
        notes.append(f"NICs delivered pooled vectors in {seen.pooled:,} mini-batches: deliver "
                     f"unique supports at most {MOST_INDICES:,} slots in a share")
    padding = sum(table["padding"] > 0 for table in seen.tables)
    if padding:
        notes.append(f"vectors of {padding} tables are padded with zeros to a dimension of the "
                     f"NIC")
    for why, count in seen.resets.items():
        notes.append(f"NICs were rebuilt with cold caches for {why}: {count:,} "
                     f"time{'s' * (count != 1)}")
    for kind, times in systems.items():
        notes += [f"{kind}: {note}" for note in times["notes"]]
        if times["why"]:
            notes.append(f"{kind}: {times['why']}")
        others = [row for row in times["rows"] if row["system"].startswith("bl-")]
        for row in times["rows"]:
            best = min((other["interval_us"], other["system"]) for other in others)
            if row["system"] == options.system and row["interval_us"] > best[0]:
                notes.append(f"{kind}: {row['system']} is slower than {best[1]}: "
                             f"{row['interval_us']:,.0f} us per mini-batch, not {best[0]:,.0f} us")
    return notes
