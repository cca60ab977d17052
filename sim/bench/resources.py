"""Rows of the resources that a NIC takes on an Alveo U280, by Yosys."""

from gen.report import SLR, report_resources
from gen.verilog import to_verilog
from rtl.config import NicConfig, preset
from rtl.nic import SmartNic
from sim.bench.rows import Job, Progress, Row

__all__ = ["resource_jobs", "resources"]

_SHARES = {False: 60.0, True: 75.0}
"""Limit in per cent of one SLR, by ``training`` (DESIGN section 7, where the larger limit also
covers the link between NICs)."""
_DEPTH = 10
"""Most LUTs in series between registers, RAMs and DSPs."""

_KINDS = {"lut": "LUT", "bram36": "BRAM36", "uram": "URAM", "dsp": "DSP"}


def resources(config: NicConfig, progress: Progress = lambda line: None) -> dict:
    """Return :func:`gen.report.report_resources` of a SmartNic; netlists are cached on disk."""
    return report_resources(to_verilog(SmartNic(config), config.name), progress)


def resource_jobs() -> list[Job]:
    """Return the jobs of ``kaggle``'s resources, without and with training; the five jobs of each
    share one report."""
    return [job for training in _SHARES
            for job in _jobs(preset("kaggle").with_fields(training=training))]


def _jobs(config: NicConfig) -> list[Job]:
    what = f"{config.name} with training" if config.training else config.name
    found: dict = {}

    def report(progress: Progress) -> dict:
        if not found:
            found.update(resources(config, progress))
        return found

    def share(kind: str, label: str) -> Job:
        name = f"{what} on one U280 SLR, {label}"

        def rows(progress: Progress) -> list[Row]:
            used = report(progress)["total"][kind]
            without = "without link" if config.training else "without training and link"
            return [Row(name, 100 * used / SLR[kind], "% of one SLR", _SHARES[config.training],
                        "<=", note=f"{used:,.0f} of {SLR[kind]:,}; {without}")]
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
