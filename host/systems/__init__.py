"""Systems as graphs of stages over named resources, and the schedule that they follow."""

from .all_on_nic import all_on_nic
from .bl_paper import bl_paper
from .bl_tuned import Tuning, bl_tuned
from .breakdown import PHASES, Breakdown, breakdown
from .cpu_mpi import cpu_mpi
from .devices import Devices
from .nic_times import NicTimes
from .options import StepOptions
from .schedule import Schedule, schedule
from .smartnic import smartnic
from .stage import Stage, Step
from .workload import Workload, replicate_small, workload_of

__all__ = ["PHASES", "Breakdown", "Devices", "NicTimes", "Schedule", "Stage", "Step",
           "StepOptions", "Tuning", "Workload", "all_on_nic", "bl_paper", "bl_tuned", "breakdown",
           "cpu_mpi", "replicate_small", "schedule", "smartnic", "workload_of"]
