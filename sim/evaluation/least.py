"""Lower bounds of the times of NICs, from counts."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from host.dlrm.formats import in_lanes
from host.model import Model, padded
from host.once import once
from host.systems import Delivery, EnTuning, delivery_of
from host.systems.nic_times import NicTimes
from host.timing.clock import CYCLE_NS
from rtl.config import LANES
from rtl.formats import DescriptorKind
from sim.evaluation.fields import Fields
from sim.evaluation.pooling import least_bytes
from sim.evaluation.site import Site
from sim.evaluation.trace import Trace, plan_of, tally_of

__all__ = ["deliveries", "least_times", "link_bounds", "with_phases"]


def deliveries(point: Fields, trace: Trace, copied_rows: int, owner: tuple[int, ...] = (),
               once: bool = False, own: bool = False) -> list[Delivery]:
    """Return what NICs deliver in each measured mini-batch if GPUs copy each table of at most
    ``copied_rows`` rows; ``owner``: tables that pool at their owner, numbered without copied
    tables; ``once``: whether repeated bags are not sent; ``own``: whether GPUs read the rows of
    their own node."""
    small = tuple(rows <= copied_rows for rows in trace.model.rows)
    kept = np.flatnonzero(~np.array(small)).tolist()
    tables = plan_of(point, trace, copied_rows).tables if owner or own else ()
    whole = [table for table, of in enumerate(tables)
             if own and table not in owner and of.kind == DescriptorKind.TABLE]
    return list(_deliveries(trace, small, point.cluster.endpoints, *(
        tuple((kept[table], tables[table].owner) for table in of) for of in (owner, whole)), once))


@once
def _deliveries(trace: Trace, small: tuple[bool, ...], endpoints: int,
                pooled: tuple[tuple[int, int], ...], own: tuple[tuple[int, int], ...],
                once: bool) -> tuple[Delivery, ...]:
    return tuple(delivery_of(tally_of(trace, number, endpoints), small, dict(pooled), once,
                             dict(own), trace.model.weighted_tables)
                 for number in range(len(trace.measured)))


def least_times(model: Model, tuning: EnTuning, of: Delivery, samples: int,
                link_us: float = 0.0) -> NicTimes:
    """Return a lower bound of the NIC times: one slot is looked up per cycle, or one segment of a
    bag sent, and one beat is delivered per cycle.

    samples: samples of a share. link_us: microseconds of the busiest network link, see
    :func:`link_bounds`.
    """
    narrowest = padded(min(model.table_dimensions))
    model = in_lanes(model, tuning.wire)
    moved = of.most("vectors" if tuning.deliver == "unique" else "slots")
    us = max(of.most("slots", "segments"), moved * max(1, model.width // LANES)) * CYCLE_NS / 1e3
    us = max(us, link_us)
    own = (0, 0) if tuning.deliver == "interaction" else (of.most("own_rows"), of.most("own_bags"))
    return NicTimes({"embedding_lookup": us}, us, own_rows=own[0], own_bags=own[1],
                    own_values=float(own[0] * narrowest),
                    delivered_bytes=of.result_bytes(tuning.deliver, model, samples))


def with_phases(busy: Sequence[NicTimes], least: Sequence[NicTimes]) -> list[NicTimes]:
    """Return the times of ``busy`` NICs with the phases of their lower bounds ``least``: latencies
    take further runs."""
    return [replace(each, phases=of.phases) for each, of in zip(busy, least)]


def link_bounds(site: Site, owner: tuple[int, ...], copied_rows: int = 0,
                once: bool = False, wire: str = "float32") -> list[float]:
    """Return a lower bound of the busiest network link's time for each measured mini-batch, in
    microseconds; 0 where a NIC serves several GPUs. ``owner``: tables that pool at their owner.
    ``once``: whether repeated bags are not sent. ``wire``: format of vectors."""
    if site.point.cluster.gpus_per_nic > 1:
        return [0.0] * len(site.trace.measured)
    rate = site.devices.network.bandwidth_gbit_s / 8 * 1e3
    return [least_bytes(site.point, site.trace, number, owner, copied_rows, once, wire) / rate
            for number in range(len(site.trace.measured))]
