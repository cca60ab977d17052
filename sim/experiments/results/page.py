"""The results page: picture, table, serving, sensitivity, and how the page is made."""

from collections import Counter
from collections.abc import Mapping, Sequence

from sim.experiments.results import serving
from sim.experiments.results.cases import BASE, COMPARED, FULL, MOST_KEYS, OWN
from sim.experiments.results.picture import chart_of, line_of
from sim.experiments.results.rows import place_of
from sim.experiments.results.sensitivity import method, ranges, section_of
from sim.page.content import Column, Figure, Page, Section, Table, Text

__all__ = ["page_of"]


def page_of(found: Mapping, command: str) -> Page:
    """Return the page.

    found: content of ``results.json``, see :func:`sim.experiments.results.results.results`.
    command: command that makes the page again.
    """
    rows = found["rows"]
    parts = [_table(rows)]
    left = [f"{place_of(row)}: {why}" for row in rows for why in _reasons(row)]
    if left:
        parts.append(Text([f"Not measured: {each}." for each in left], bullets=True))
    return Page("EmberNIC: results", found["answer"], None, [
        Section("When sending rows pays", [_picture(rows, command)]),
        Section("Where EN is faster", parts),
        serving.section_of(found["serving"]),
        section_of(rows, command),
        Section("Appendix: how the page is made", [
            Text([*_method(rows), *serving.method(found["serving"]), *method(rows)], bullets=True),
            ranges(found["kinds"])])], _setting(found))


def _reasons(row: Mapping) -> list[str]:
    """Return why a row, or a system of it, is not measured."""
    return [row["why"]] if row["systems"][BASE]["interval_us"] is None else [
        f"{name}, {each['why']}" for name, each in row["systems"].items() if each["why"]]


def _picture(rows: Sequence[Mapping], command: str) -> Figure:
    line = line_of(rows)
    fitted = "" if line is None else (
        f" Line: EN is as fast as {BASE}, by least squares of the logarithms; {line.right} of "
        f"{sum(bool(row['ratios'][OWN]) for row in rows)} points lie on their side of the line. "
        "The picture has no line if the fit has none within it.")
    return Figure(chart_of(rows), (
        "Each point is a workload, cluster and mini-batch. Right: a share needs many bags of other "
        "nodes per distinct row of other nodes, so that sending each row once saves bytes. Left: "
        "bags have many keys, so that a pooled vector per bag is smaller. Colour: how many times "
        f"as fast EN (EmberNIC, this NIC) is as {BASE} (GPUs alone with tuned software)." + fitted),
        command)


def _table(rows: Sequence[Mapping]) -> Table:
    about = "5th to 95th percentile over the uncertain constants"
    columns = [
        "workload", "cluster", Column("mini-batch", ",d", "samples over all nodes"),
        Column(f"{BASE} us", ",.1f", "time per mini-batch of GPUs alone with tuned software"),
        Column("its bottleneck", about="the busiest resource: cpu (host threads), gpu, nccl "
               "(communicator), link (network), pcie_in and pcie_out (the GPU's link), nic"),
        Column("FS x", ".2f", f"how many times as fast as {BASE} the paper's full system is"),
        Column("FS range", about=about),
        Column("EN x", ".2f", f"how many times as fast as {BASE} EmberNIC is"),
        Column("EN range", about=about),
        Column("EN's bottleneck"),
        *(Column(f"{name} B", ",.0f", f"network bytes per sample of {name}")
          for name in (BASE, "FS", "EN")),
        Column("largest change", about="the single fair change of both sides that moves EN x most"),
        Column("EN x after it", ".2f")]
    return Table(columns, [_cells(row) for row in rows if row["ratios"][OWN]
                           or row["systems"][BASE]["interval_us"]],
                 "A row without EN x has its reason below.")


def _cells(row: Mapping) -> list:
    systems, largest = row["systems"], row["largest"]
    return [row["workload"], row["cluster"], row["mini_batch"],
            systems[BASE]["interval_us"], systems[BASE]["bottleneck"],
            *(each for name in (FULL, OWN) for each in (row["ratios"][name], _range(row, name))),
            systems[OWN]["bottleneck"],
            *(systems[name]["network_bytes_per_sample"] for name in COMPARED),
            largest and largest["change"], largest and largest["ratio"]]


def _range(row: Mapping, name: str) -> str | None:
    found = row["spread"][name]
    return found and f"{found['low']:.2f} to {found['high']:.2f}"


def _method(rows: Sequence[Mapping]) -> list[str]:
    few = [f"{place_of(row)}: {row['sampled']:,} samples" for row in rows
           if row["sampled"] and not row["why"]]
    counts = sorted({(row["measured"], row["warmup"]) for row in rows})
    said = [f"Each system has the fastest of its options at each row: mini-batches in flight and "
            f"per graph, the placement of the tables, and the options that sim compare prints. "
            f"{BASE}, {FULL} and EN have the same kinds of options. Foreign bags and rows are "
            "counted with whole tables, the same number at each node.",
            f"Chosen placements (and points): {'; '.join(_placements(rows))}.",
            "NICs are simulated in fidelity fast, whose cycles are those of the RTL. GPUs, hosts "
            "and networks are timing models with the profiles of the cluster.",
            "Measured mini-batches (and mini-batches before them that warm the caches): "
            + ", ".join(f"{many} ({warm})" for many, warm in counts) + ". Few mini-batches are "
            "measured where they have many keys or long vectors.",
            f"A mini-batch of more than {MOST_KEYS:,} keys is not measured."]
    if few:
        said.append("NICs run mini-batches of fewer samples, and their intervals and bytes are "
                    "multiplied, in these rows: " + "; ".join(few) + ". Rows that repeat between "
                    "the smaller mini-batches are then sent again, which does not favour EN.")
    return said + [f"{place_of(row)}: {note}." for row in rows for note in row["notes"]]


def _placements(rows: Sequence[Mapping]) -> list[str]:
    """Return the placements of each system, with the number of points that have each."""
    found = {name: Counter(row["systems"][name]["options"][-1].removeprefix("placement ")
                           for row in rows if row["systems"][name]["options"])
             for name in COMPARED}
    return [f"{name}: {', '.join(f'{placement} ({many})' for placement, many in each.items())}"
            for name, each in found.items() if each]


def _setting(found: Mapping) -> list[tuple[str, str]]:
    rows = found["rows"]
    return [("clusters", "; ".join(dict.fromkeys(
                f"{row['cluster']}: {row['nodes']} nodes, software {row['profile']}"
                for row in rows))),
            ("samples", "; ".join(dict.fromkeys(
                row["source"] for row in rows if row["source"]))),
            ("tables", "each system has the fastest placement that its search finds"),
            ("NIC fidelity", ", ".join(dict.fromkeys(row["fidelity"] for row in rows))),
            ("points", f"{found['points']}, of which {len(found['failed'])} failed"),
            ("made with", f"EmberNIC {found['version']}; " + ", ".join(
                f"{name} {digest[:8]}" for name, digest in found["profiles"].items()))]
