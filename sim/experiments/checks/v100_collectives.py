"""The collectives of the same step, timed on the last rank to arrive."""

from dataclasses import replace

import numpy as np

from host.devices.nccl import NcclCollectives, NcclProfile
from host.devices.topology import Topology, TopologyProfile
from host.measurements.step import StepCollective, step_collectives
from host.toml.profile import load_profile
from sim.experiments.checks.check import Check, Comparison, percent

__all__ = ["comparison"]

_BOUND = 0.3
_EARLIER = {"base_ll_us": 3.6, "base_ll128_us": 10.0, "local_hop_ll_us": 0.47}
"""NCCL's constants up to release 2.17 that differ from the profile."""


def comparison() -> Comparison:
    """Return the sums of all-to-alls and of all-reduces, and each collective."""
    profile = load_profile("nccl_nvlink_v100", NcclProfile)
    found = step_collectives()
    model = _model(profile)
    checks = []
    for kind, words in (("all_to_all", "all-to-alls"), ("all_reduce", "all-reduces")):
        these = [each for each in found if each.kind == kind]
        checks.append(Check(f"{len(these)} {words}", sum(_us(model, each) for each in these),
                            sum(each.last_us for each in these), "us", _BOUND, 8, 128))
    checks += [Check(f"{each.kind.replace('_', '-')} of {_size(each)}", _us(model, each),
                     each.last_us, "us", None, 8, 128) for each in found]
    return Comparison.of(
        "V100 step, collectives", "Collectives of the same step, over NVLink", "V100 step",
        "The shortest time over the ranks, which is that of the last rank to arrive: the others "
        "wait for it inside their kernels. All-to-alls and all-reduces are judged separately, "
        "because the three all-reduces are four times as long as the five all-to-alls.",
        checks, _conclusion(checks, profile, found))


def _model(profile: NcclProfile) -> NcclCollectives:
    return NcclCollectives(profile, Topology(load_profile("topology_dgx1_v100", TopologyProfile)))


def _us(model: NcclCollectives, each: StepCollective) -> float:
    """Return our time of a collective's kernel."""
    if each.kind == "all_reduce":
        return model.all_reduce(each.sent[0]).us
    ranks = model.topology.endpoints
    sent = each.sent if len(each.sent) == ranks else (each.sent[0] / ranks,) * ranks
    traffic = np.tile(np.array(sent, np.float64), (ranks, 1))
    return model.all_to_all(traffic).us


def _size(each: StepCollective) -> str:
    """Return the total bytes that a rank sends, in words."""
    return f"{sum(each.sent):,} B"


def _conclusion(checks: list[Check], profile: NcclProfile, found: tuple[StepCollective, ...]
                ) -> str:
    earlier = _model(replace(profile, **_EARLIER))
    sums = [sum(_us(earlier, each) for each in found if each.kind == kind)
            for kind in ("all_to_all", "all_reduce")]
    errors = [percent(ours / check.theirs - 1) for ours, check in zip(sums, checks)]
    alone = _model(replace(profile, base_ll128_us=1e6, base_simple_us=1e6))
    large = max((each for each in found if each.kind == "all_reduce"), key=lambda e: e.sent[0])
    return ("The constants are NCCL's own, of one release. With those up to release 2.17, the "
            f"errors of the two sums are {errors[0]} and {errors[1]}: fixed times, not rates, "
            "determine an exchange of this size. The model uses the fastest protocol. For the "
            f"all-reduce of {_size(large)} it gives {_us(_model(profile), large):.0f} us against "
            f"{large.last_us:.0f} measured; LL alone would take {_us(alone, large):.0f}. The "
            "choice of the protocol therefore explains the error.")
