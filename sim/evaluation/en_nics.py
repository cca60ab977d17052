"""EN's NICs under its options."""

from dataclasses import replace

from gen.base.settings import overridden
from host.systems import Devices, EnTuning, HostTuning, fixed_of, ring_of
from host.timing.clock import cycles_of_us
from host.timing.network import IP_BYTES, MTUS
from rtl.formats import BEAT_BYTES
from sim.evaluation.fields import Fields, SmartNicOptions
from sim.evaluation.nic import NicPart, nic_part
from sim.evaluation.nic_options import Nics
from sim.evaluation.pooling import owner_tables
from sim.evaluation.site import Site
from sim.evaluation.system import PARTS
from sim.evaluation.trace import Trace, model_without, plan_of, without_small
from sim.job.row_places import check_bar

__all__ = ["JUMBO", "SIZES", "check_jumbo", "check_seen", "en_nic", "nic_devices", "nic_point",
           "nics_of", "owner_pooled", "reads_own"]

JUMBO = [f"{name}={(MTUS[1] - IP_BYTES) // BEAT_BYTES - 1}"
         for name in ("net_payload_beats", "host_payload_beats")]
"""Settings of NICs that send packets of 9,000 bytes: beats behind the header beat."""

SIZES = {"terabyte": ("hold_vectors=2048", "global_gradient_keys=2048")}
"""Buffers of a data set's NIC that differ from its preset: twice the hold buffer and twice the
global gradient table. Their size is 64 + 32 + 16 + 134 URAM of the 320 in an SLR, computed from
bits."""


def check_jumbo(point: Fields, kind: type[HostTuning]) -> None:
    """Raise ``ValueError`` if a point fixes packets that its network does not carry."""
    if fixed_of(kind, point.system.fixed).get("jumbo") and point.cluster.mtu < MTUS[1]:
        raise ValueError(f"jumbo must be false where mtu is {point.cluster.mtu}; it needs "
                         f"{MTUS[1]}")


def nic_point(point: Fields, devices: Devices, tuning: EnTuning,
              owner: tuple[int, ...] = ()) -> tuple[Fields, Nics]:
    """Return a point with the NIC settings of EN under ``tuning``, and its NICs; ``owner``: tables
    that pool at their owner."""
    training, given = point.workload.training, point.system
    parts = {"lc"} if training else {"lc", "rc"}
    if tuning.deliver == "interaction" or training:
        parts.add("sc")
    own = [f"requester_merge={str(tuning.merge).lower()}"]
    own += ["output_queues=true"] * tuning.queues
    own += ["deliver=unique"] * (tuning.deliver == "unique")
    if tuning.completion:
        flush = str(devices.gpu.gpu.flush_reads > 0).lower()
        own += ["completions=true", f"completion_flush={flush}"]
    if tuning.patient:
        trip = round(cycles_of_us(2 * devices.network.one_way_us))
        own += [f"lookup_timeout={trip}", f"vector_timeout={trip}"]
    own += ["gpu_rings=true"] * tuning.ring + ["row_reads=true"] * tuning.reads
    own += JUMBO * tuning.jumbo
    return replace(point, system=SmartNicOptions(
        "+".join(sorted(parts, key=PARTS.index)), fidelity=given.fidelity,
        local_cache=given.local_cache, remote_cache=given.remote_cache,
        settings=overridden(own, given.settings), sampled=given.sampled,
        persistent_gather=tuning.ring, pace_us=tuning.pace_us, owner_tables=owner,
        update=tuning.update, own_bags="gpu" if reads_own(point, tuning) else "nic",
        repeats="neighbours" if tuning.bags_once else "send")), Nics(
            frozenset(parts), SIZES.get(point.workload.preset, ()) if tuning.sizes else (),
            wire=tuning.wire)


def reads_own(point: Fields, tuning: EnTuning) -> bool:
    """Return whether GPUs read the rows of their own node for their own samples."""
    return (tuning.own_at_gpu and tuning.deliver != "interaction" and not point.workload.training
            and point.cluster.endpoints > 1 and point.cluster.gpus_per_nic == 1)


def nic_devices(devices: Devices, tuning: EnTuning) -> Devices:
    """Return the devices as EN's NICs see them."""
    return ring_of(devices) if tuning.ring else devices


def check_seen(site: Site, tuning: EnTuning) -> None:
    """Raise :class:`BarError` if NICs must read rows that the GPU's BAR does not expose."""
    if tuning.reads:
        point, _ = nic_point(site.point, site.devices, tuning)
        plan = plan_of(point, site.trace, tuning.copied_rows)
        check_bar(plan, model_without(site.trace, tuning.copied_rows).width,
                  site.devices.gpu.gpu)


def owner_pooled(site: Site, tuning: EnTuning) -> tuple[int, ...]:
    """Return the tables of EN that pool at their owner, numbered without copied tables."""
    return owner_tables(site.point, site.nic_trace, tuning.pool, tuning.copied_rows,
                        tuning.bags_once, tuning.update, tuning.wire)


def nics_of(site: Site, tuning: EnTuning) -> tuple[Fields, Nics, Trace, Devices]:
    """Return the point, the NICs, the trace and the devices of a run of EN's NICs."""
    return (*nic_point(site.point, site.devices, tuning, owner_pooled(site, tuning)),
            without_small(site.nic_trace, tuning.copied_rows), nic_devices(site.devices, tuning))


def en_nic(site: Site, tuning: EnTuning, enough: float = 0.0) -> NicPart:
    """Run EN's NICs over the trace without the tables that GPUs copy.

    With completions, the times end with the completion word that each NIC writes.
    """
    return nic_part(*nics_of(site, tuning), site.runs, enough)
