"""Evaluated systems as graphs of stages over named resources, and their times in flight."""

from host.systems.all_on_nic import all_on_nic
from host.systems.bl_paper import bl_paper
from host.systems.bl_tuned import bl_tuned
from host.systems.breakdown import PHASES, breakdown
from host.systems.cpu_mpi import cpu_mpi
from host.systems.delivery import Delivery, delivery_of
from host.systems.devices import NETWORK, Devices
from host.systems.en import en, ring_of
from host.systems.en_tuning import DELIVER, EnTuning, en_variants
from host.systems.nic_times import NicTimes, OwnerUpdates
from host.systems.options import (
    BAG_PACES,
    COPIED_ROWS,
    PACES,
    POOLS,
    THREADS,
    UPDATES,
    WIRES,
    HostTuning,
    NicTuning,
    StepOptions,
    Variants,
    every,
    fixed_of,
    host_variants,
    named_of,
    near,
    open_variants,
    start_of,
    wires_to,
)
from host.systems.schedule import Schedule, busy_us, schedule, steady_us
from host.systems.shared_graph import in_graphs, in_one_graph
from host.systems.smartnic import smartnic
from host.systems.stage import Part, Stage, Step
from host.systems.tally import Tally
from host.systems.tuning import Tuning, best, tuning_variants
from host.systems.way import Way
from host.systems.workload import Workload, workload_of

__all__ = ["BAG_PACES", "COPIED_ROWS", "DELIVER", "NETWORK", "PACES", "PHASES", "POOLS", "THREADS",
           "UPDATES", "WIRES", "Delivery", "Devices", "EnTuning", "HostTuning", "NicTimes",
           "NicTuning", "OwnerUpdates", "Part", "Schedule", "Stage", "Step", "StepOptions", "Tally",
           "Tuning", "Variants", "Way", "Workload", "all_on_nic", "best", "bl_paper", "bl_tuned",
           "breakdown", "busy_us", "cpu_mpi", "delivery_of", "en", "en_variants", "every",
           "fixed_of", "host_variants", "in_graphs", "in_one_graph", "named_of", "near",
           "open_variants", "ring_of", "schedule", "smartnic", "start_of", "steady_us",
           "tuning_variants", "wires_to", "workload_of"]
