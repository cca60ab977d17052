"""What the timing models say of the operators and the DLRM that were measured."""

from host.calibrate.check import Check
from host.calibrate.gpu.items import check, dlrm
from host.calibrate.gpu.profiles import Profiles
from host.calibrate.reading import Book
from host.devices import dense_work, embedding_work
from host.devices.copies import CopyTime
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.model import MODELS, Model

__all__ = ["checks", "parts"]


def checks(found: Profiles, book: Book) -> list[Check]:
    """Return model and measurement of all that was measured, in the order of the list.

    An operator is called and waited for, under the eager profile. Of the DLRM, ``eager`` and
    ``graphed`` are whole mini-batches under the profile of that kind, its parts the GPU's time
    alone.
    """
    gpu = GpuTime(found.gpu, found.eager)
    said = [(f"{case.name}", case.reading, (gpu.run(*case.operations) + gpu.synchronize()).us)
            for samples in check.SAMPLES for case in check.cases(MODELS["kaggle"], samples)]
    model = MODELS["kaggle"]
    for samples in dlrm.SAMPLES:
        name = f"dlrm.{model.name}.{samples}"
        whole = {"eager": _whole(found, found.eager, model, samples),
                 "graphed": _whole(found, found.tuned, model, samples)}
        work = {part: sum(map(gpu.work_us, operations))
                for part, operations in parts(model, samples).items()}
        said += [(f"dlrm {model.name} {samples} {part}", f"{name}.{part}_us", us)
                 for part, us in (whole | work).items()]
    return [Check(what, us, book[name]) for what, name, us in said if name in book]


def parts(model: Model, samples: int) -> dict[str, tuple[Operation, ...]]:
    """Return the operations of each part of :class:`host.calibrate.gpu.inference.Inference`.

    ``lookups`` one for each table, ``lookup`` one for all, after the keys' move to one table.
    """
    keys = samples * model.tables
    return {
        "lookups": (embedding_work.gather(keys, keys, model.dimension, model.tables),),
        "lookup": (embedding_work.layout(keys),
                   embedding_work.gather(keys, keys, model.dimension, model.tables, fused=True)),
        "bottom": dense_work.mlp(samples, model.bottom_layers),
        "interaction": dense_work.interaction(samples, model),
        "top": dense_work.mlp(samples, model.top_layers)}


def _whole(found: Profiles, software: SoftwareProfile, model: Model, samples: int) -> float:
    """Return the microseconds of a mini-batch from host memory to host memory."""
    gpu, copies = GpuTime(found.gpu, software), CopyTime(found.pcie, software)
    part = parts(model, samples)
    lookup = part["lookup"] if software.graphs else part["lookups"]
    inputs = samples * (8 * model.tables + 4 * model.dense)
    return (copies.copy(inputs, 1 if software.graphs else 2)
            + gpu.run(*part["bottom"], *lookup, *part["interaction"], *part["top"])
            + copies.copy(4 * samples, 1) + gpu.synchronize()).us
