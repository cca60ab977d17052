"""The report of a PyTorch program on NICs, as plain values."""

from collections.abc import Sequence
from importlib.metadata import version

import torch

from sim.torch.capture import Capture
from sim.torch.process_group import collectives
from sim.torch.session import Session
from sim.torch.systems import times_of

__all__ = ["failures", "result_of"]

_KINDS = {"inference": False, "training": True}


def result_of(session: Session, capture: Capture, *, seconds: float, script: str | None,
              arguments: Sequence[str]) -> dict:
    """Return the report of a session that is over; ``seconds``: that the program took."""
    options, record = session.options, session.record
    rtl = options.fidelity == "rtl"
    systems = {kind: times_of(record.alike(trained), session.chains, trained, options.timed)
               for kind, trained in _KINDS.items() if record.recent[trained]}
    return {
        "schema": "embernic/torch/1",
        "script": script, "arguments": list(arguments), "exit_status": 0,
        "options": options.to_json(), "torch": str(torch.__version__),
        "numpy": version("numpy"), "wall_seconds": seconds,
        "tables": [table.to_json() for table in session.tables.all],
        "steps": record.steps,
        "mini_batches": {kind: _totals([step for step in record.steps
                                        if step["workload"] == kind]) for kind in systems},
        "values": {"source": "rtl" if rtl else "numerics",
                   "bit_identical": not session.verdicts["different"] if rtl else None,
                   "results": session.verdicts if rtl else None,
                   "against_pytorch": session.comparison.to_json(),
                   "weighted_calls": session.weighted},
        "nics": _nics(session) if rtl else None,
        "gradients": {"bags": session.gradients, "optimizer_on": options.optimizer_on,
                      "fused": dict(session.updates),
                      "nic": session.nic_optimizer and session.nic_optimizer.to_json()},
        "not_caught": [{"place": place, "what": what, "count": count}
                       for (place, what), count in capture.missed.items()],
        "collectives": collectives(),
        "systems": systems,
        "notes": _notes(session, systems),
    }


def failures(result: dict) -> list[str]:
    """Return in a line each what went wrong on the NICs."""
    wrong = result["values"]["results"]
    return [] if not wrong or not wrong["different"] else [
        f"{wrong['different']:,} samples differ from the numerics"]


def _totals(steps: list[dict]) -> dict:
    """Return sums over mini-batches."""
    return {"count": len(steps)} | {name: sum(step[name] for step in steps)
                                    for name in ("samples", "bags", "lookups", "unique", "bytes")}


def _nics(session: Session) -> dict:
    """Return what the NICs did."""
    return {"mini_batches": len(session.latencies), "latencies_us": session.latencies,
            "uncached": session.uncached, "counts": dict(session.counts),
            "resets": dict(session.resets)}


def _notes(session: Session, systems: dict) -> list[str]:
    """Return in words where the report is not what one might take it for."""
    options, notes = session.options, []
    nic = session.nic_optimizer
    if nic is not None and nic.rows:
        notes.append(f"the NICs' SGD, by the bit-exact numerics, wrote {nic.rows:,} rows; "
                     f"{nic.equal:,} of them are PyTorch's bit for bit, the others at most "
                     f"{nic.ulp:,} ulp away; the times of training are of systems that write the "
                     f"rows themselves")
    if session.gradients and (nic is None or session.updates or not nic.rows):
        fused = ", ".join(f"{name} {count:,} times" for name, count in session.updates.items())
        whose = f"FBGEMM's fused optimizer ({fused})" if fused else "PyTorch's optimizer"
        notes.append(f"{whose} on the host wrote the rows; the times of training are of systems "
                     f"that do so themselves, with SGD")
    if session.weighted:
        notes.append(f"the host multiplied by the weights of keys: {session.weighted:,} "
                     f"call{'s' * (session.weighted != 1)}")
    if session.uncached:
        notes.append(f"the NICs' caches were off in {session.uncached:,} mini-batches, because "
                     f"PyTorch had changed rows")
    padding = sum(table.to_json()["padding"] > 0 for table in session.tables.all)
    if padding:
        notes.append(f"vectors of {padding} tables are padded with zeros to a dimension that the "
                     f"NIC has")
    for why, count in session.resets.items():
        notes.append(f"NICs were set up anew, with cold caches, for {why}: {count:,} "
                     f"time{'s' * (count != 1)}")
    for kind, times in systems.items():
        notes += [f"{kind}: {note}" for note in times["notes"]]
        if times["why"]:
            notes.append(f"{kind}: {times['why']}")
        others = [row for row in times["rows"] if row["system"].startswith("bl-")]
        for row in times["rows"]:
            best = min((other["interval_us"], other["system"]) for other in others)
            if row["system"] == options.system and row["interval_us"] > best[0]:
                notes.append(f"{kind}: {row['system']} loses here: a mini-batch every "
                             f"{row['interval_us']:,.0f} us, {best[1]} every {best[0]:,.0f} us")
    return notes
