"""Options of a PyTorch program on NICs.

They are outside :mod:`sim.torch`, because ``sim torch --help`` must work without PyTorch.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

from gen.base.option import REQUIRED, AnyPath, Settings, option, same
from sim.job.options import RunArguments
from sim.job.outputs import Outputs
from sim.job.simulation import FAST, FIDELITIES, Simulation
from sim.job.workload import Workload

__all__ = ["AttachArguments", "ProgramOptions", "TorchArguments"]


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """Execution of a program, and the system that times its mini-batches.

    :class:`sim.torch.options.TorchOptions` checks them.
    """

    system: str = option(
        "fs", "System that the script runs on: en, fs, bl-tuned or bl-paper. The report shows the "
        "times of all systems.", shown="fs", joined=True)
    nodes: int | None = option(
        None, "Nodes that share each mini-batch. If the script has several processes, each is "
        "a node.", shown="4, or the processes of the script")
    placement: str = same(Workload, "placement")
    fidelity: str = option(
        "model", "Source of the vectors. rtl: the NICs' RTL; fast: the bit-exact numerics. Both "
        "use modelled NICs for the times of systems.", among=FIDELITIES, old=FAST)
    optimizer_on: str = option(
        "host", "Where rows of tables are updated. host: by any PyTorch optimizer; nic: by the "
        "NICs' SGD or row-wise Adagrad.", among=("host", "nic"))
    repeats: str = same(Workload, "repeats", help="Equal bags of a table in a node's share of a "
                        "mini-batch, with RTL: sent each (send), once to consecutive samples "
                        "(neighbours), or once (indices).")
    config: str | None = option(
        None, "Preset of the NIC that runs in RTL.",
        shown="kaggle up to dimension 16, else terabyte")
    set: Settings = same(RunArguments, "set")
    software: str = option("eager", "Software profile of all systems: eager or tuned.")
    gpu: str = option(str(Workload.gpu), "GPU profile.")
    engine: str = same(Simulation, "engine")
    threads: int = same(Simulation, "threads")
    seed: int = option(Workload.seed, "Seed of the random draws of systems.", least=0)


@dataclass(frozen=True, kw_only=True)
class AttachArguments(ProgramOptions):
    """Arguments of :func:`sim.api.attach`."""

    warn: Callable[[str], None] | None = option(
        None, "Called with a line per lookup that is not captured; by default lines go to standard "
        "error.")


@dataclass(frozen=True)
class TorchArguments(AttachArguments):
    """Options of the command ``torch``, and arguments of :func:`sim.api.torch`."""

    script: AnyPath = option(REQUIRED, "PyTorch script, run unedited.")
    arguments: Sequence[str] = option(
        (), "Arguments of the script. Options of this command come before the script.")
    _: KW_ONLY
    json: AnyPath | None = same(Outputs, "json")
    report: AnyPath | None = option(
        None, "Write a page and the counts of each mini-batch to this folder.")
    left: Callable[[dict], bool] | None = option(
        None, "Called with the report, after its files are written, if the script ends this "
        "process by os._exit, os.abort or exec. Returns whether the exit status stays the "
        "script's.")
