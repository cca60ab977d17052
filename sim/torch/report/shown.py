"""Tables of a PyTorch program's report, for a terminal."""

from rich.table import Table

from host.systems import PHASES
from sim.torch.values.written import called

__all__ = ["tables_of"]


def tables_of(result: dict) -> list[Table]:
    """Return the tables of a result of :func:`sim.torch.report.result.result_of`."""
    return [_program(result), *(_systems(kind, times, result["options"])
                                for kind, times in result["systems"].items() if times["rows"])]


def _program(result: dict) -> Table:
    """Return the table of lookups and sources of vectors."""
    table = Table(title=f"Embedding bags of {result['script'] or 'the program'}", show_header=False)
    table.add_column()
    table.add_column()
    if len(result["processes"]) > 1:
        table.add_row("processes", f"{len(result['processes']):,}")
    table.add_row("tables", f"{len(result['tables']):,}")
    for kind, sums in result["mini_batches"].items():
        count = sums["count"]
        table.add_row(f"mini-batches, {kind}", f"{count:,}")
        table.add_row("  mean", f"{sums['samples'] / count:,.1f} samples, "
                      f"{sums['lookups'] / count:,.1f} lookups, "
                      f"{sums['unique'] / count:,.1f} unique keys, "
                      f"{sums['bytes'] / count:,.0f} bytes")
        if cache := sums["local_cache"]["mini_batches"]:
            some = "" if cache == count else f", in {cache:,} mini-batches"
            table.add_row("  hits of the local caches", f"{sums['local_cache']['hits']:,} of "
                          f"{sums['local_cache']['accesses']:,}{some}")
    values = result["values"]
    if values["source"] == "rtl":
        found = values["results"]
        nics = result["nics"]
        table.add_row("vectors", "from RTL")
        table.add_row("  bit-identical to the numerics",
                      f"{found['equal']:,} of {found['equal'] + found['different']:,} samples")
        if nics["latencies_us"]:
            table.add_row("  lookups of a mini-batch", f"{_mean(nics['latencies_us']):,.1f} us")
    else:
        table.add_row("vectors", "from the bit-exact numerics")
    for name, kind in (("bags of one key", "one_key"), ("other bags", "others")):
        against = values["against_pytorch"][kind]
        if against["bags"]:
            worst = f", at most {against['most_ulp']:,} ulp" if against["most_ulp"] else ""
            table.add_row(f"  {name}, equal to PyTorch's",
                          f"{against['equal']:,} of {against['bags']:,}{worst}")
    gradients = result["gradients"]
    if gradients["bags"]:
        nic = gradients["nic"]
        whose = (f"the NICs' {called(nic['optimizer'])}" if nic and nic["rows"] else
                 f"{'FBGEMM' if gradients['fused'] else 'PyTorch'} on the host")
        table.add_row("gradients of bags", f"{gradients['bags']:,}, rows written by {whose}")
        if nic and nic["rows"]:
            worst = (f", difference at most {nic['most_difference']:.1e} of the largest value"
                     if nic["equal"] < nic["rows"] else "")
            table.add_row("  rows, equal to the program's optimizer",
                          f"{nic['equal']:,} of {nic['rows']:,}{worst}")
            if values["source"] == "rtl":
                table.add_row("  bit-identical to the numerics",
                              f"{nic['rows'] - nic['different']:,} of {nic['rows']:,}")
                if times := result["nics"]["updates_us"]:
                    table.add_row("  update", f"{_mean(times):,.1f} us")
            if nic["states"]:
                worst = (f", at most {nic['most_state_ulp']:,} ulp"
                         if nic["equal_states"] < nic["states"] else "")
                table.add_row("  states, equal to the program's optimizer",
                              f"{nic['equal_states']:,} of {nic['states']:,}{worst}")
    missed = sum(each["count"] for each in result["not_caught"])
    table.add_row("lookups not caught", f"{missed:,}")
    if result["collectives"]:
        count, size = (sum(each[name] for each in result["collectives"])
                       for name in ("count", "bytes"))
        table.add_row("collectives", f"{count:,}, {size:,} bytes")
    return table


def _systems(kind: str, times: dict, options: dict) -> Table:
    """Return the table of times on each system."""
    rows = times["rows"]
    table = Table(title=f"{kind.capitalize()}: a mini-batch of {times['samples']:,} samples on "
                        f"{options['nodes']} nodes, in us")
    table.add_column("")
    for row in rows:
        chosen = row["system"] == options["system"]
        table.add_column(row["system"], justify="right", style="bold" if chosen else None)
    table.add_row("interval between mini-batches", *(f"{row['interval_us']:,.0f}" for row in rows))
    table.add_row("  mini-batches in flight", *(str(row["in_flight"]) for row in rows),
                  end_section=True)
    table.add_row("a mini-batch alone", *(f"{row['service_us']:,.0f}" for row in rows))
    for phase in PHASES:
        if any(row["phases_us"][phase] >= _LEAST for row in rows):
            table.add_row(f"  {phase.replace('_', ' ')}",
                          *(f"{row['phases_us'][phase]:,.0f}" for row in rows))
    table.add_section()
    for name, field, form in (("hits of the local caches", "hit_rate", ".1%"),
                              ("lookups saved on the network", "saved", ",.1f")):
        table.add_row(name, *("" if row[field] is None else format(row[field], form)
                              for row in rows))
    return table


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


_LEAST = 0.5
"""Phases below this number of microseconds are omitted."""
