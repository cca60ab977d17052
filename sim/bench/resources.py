"""Rows of the resources of a NIC on an Alveo U280, by Yosys."""

from gen.netlist.report import SLR, report_resources
from gen.verilog.convert import to_verilog
from rtl.config import NicConfig, preset
from rtl.nic import SmartNic
from sim.bench.bags import OWNER_BAGS, REPEAT_WORDS
from sim.bench.rows import Job, Progress, Row

__all__ = ["resource_jobs", "resources"]

_LINKED = {"training": True, "link": True}
_CASES = (("kaggle", {}, 60.0, 60.0),
          ("kaggle with owner_bags", {"owner_bags": OWNER_BAGS}, 60.0, 75.0),
          ("kaggle with owner_bags and repeats",
           {"owner_bags": OWNER_BAGS, "repeat_words": REPEAT_WORDS}, 60.0, 75.0),
          ("kaggle with training", {"training": True}, 75.0, 75.0),
          ("kaggle with training and link", _LINKED, 75.0, 80.0))
"""Builds, and the limits of LUTs and of other resources in per cent of an SLR."""
_DEPTH = 10
"""Most LUTs in series between registers, RAMs and DSPs."""

_KINDS = {"lut": "LUT", "bram36": "BRAM36", "uram": "URAM", "dsp": "DSP"}


def resources(config: NicConfig, progress: Progress = lambda line: None) -> dict:
    """Return :func:`gen.netlist.report.report_resources` of a SmartNic; netlists are cached on
    disk."""
    return report_resources(to_verilog(SmartNic(config), config.name), progress)


def resource_jobs() -> list[Job]:
    """Return the jobs of ``kaggle``'s resources, alone, with owner-pooled bags, with the comparison
    of these bags, with training, and with training and the reliable link; the five jobs of each
    share one report."""
    return [job for what, changes, lut, rest in _CASES
            for job in _jobs(what, preset("kaggle").with_fields(**changes), lut, rest)]


def _jobs(what: str, config: NicConfig, most_luts: float, most: float) -> list[Job]:
    found: dict = {}

    def report(progress: Progress) -> dict:
        if not found:
            found.update(resources(config, progress))
        return found

    def share(kind: str, label: str) -> Job:
        name = f"{what} on one U280 SLR, {label}"

        def rows(progress: Progress) -> list[Row]:
            used = report(progress)["total"][kind]
            return [Row(name, 100 * used / SLR[kind], "% of one SLR",
                        most_luts if kind == "lut" else most, "<=",
                        note=f"{used:,.0f} of {SLR[kind]:,}")]
        return Job("resources", name, rows)

    def depth(progress: Progress) -> list[Row]:
        whole = report(progress)
        prefix = f"{whole['name']}__"
        deepest = max(whole["blocks"], key=lambda block: block["depth"])
        return [Row(f"{what}, deepest path", whole["total"]["depth"], "LUT", _DEPTH, "<=",
                    note=f"between FF, RAM or DSP, a carry chain counts 1; deepest block alone: "
                         f"{deepest['name'].removeprefix(prefix)} ({deepest['depth']})")]

    return [*(share(kind, label) for kind, label in _KINDS.items()),
            Job("resources", f"{what}, deepest path", depth)]
