"""What the timing models say of the operators and the DLRM that were measured."""

from host.calibrate.check import Check
from host.calibrate.gpu.items import check, dlrm
from host.calibrate.gpu.modelled_halves import halves
from host.calibrate.gpu.profiles import Profiles
from host.calibrate.reading import Book
from host.devices import dense_work, embedding_work
from host.devices.copies import CopyTime
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.model import MODELS, Model

__all__ = ["checks", "parts", "whole_us"]


def checks(found: Profiles, book: Book) -> list[Check]:
    """Return model and measurement of all that was measured, in the order of the list.

    An operator is called and waited for, under the eager profile. Of the DLRM, ``eager``,
    ``graphed`` and ``fused`` are whole mini-batches, its parts the GPU's time alone. Of EN and
    ``bl-tuned``, what the item ``en`` measures.
    """
    gpu = GpuTime(found.gpu, found.eager)
    said = [(f"{case.name}", case.reading, (gpu.run(*case.operations) + gpu.synchronize()).us)
            for samples in check.SAMPLES for case in check.cases(MODELS["kaggle"], samples)]
    model = MODELS["kaggle"]
    for samples in dlrm.SAMPLES:
        name = f"dlrm.{model.name}.{samples}"
        whole = {"eager": whole_us(found, found.eager, model, samples),
                 "graphed": whole_us(found, found.tuned, model, samples),
                 "fused": whole_us(found, found.tuned, model, samples, fused=True)}
        work = {part: sum(map(gpu.work_us, operations))
                for part, operations in parts(model, samples).items()}
        said += [(f"dlrm {model.name} {samples} {part}", f"{name}.{part}_us", us)
                 for part, us in (whole | work).items()]
    said += halves(found, book)
    return [Check(what, us, book[name]) for what, name, us in said if name in book]


def parts(model: Model, samples: int, fused: bool = False) -> dict[str, tuple[Operation, ...]]:
    """Return the operations of each part of :class:`host.calibrate.gpu.inference.Inference`.

    ``lookups`` one for each table, ``lookup`` one for all, after the keys' move to one table.
    ``fused``: activations are parts of the products, but for the last, a sigmoid.
    """
    keys = samples * model.tables
    sigmoid = (dense_work.elementwise(samples),) if fused else ()
    return {
        "lookups": (embedding_work.gather(keys, keys, model.dimension, model.tables),),
        "lookup": (embedding_work.layout(keys),
                   embedding_work.gather(keys, keys, model.dimension, model.tables, fused=True)),
        "bottom": dense_work.mlp(samples, model.bottom_layers, int(fused)),
        "interaction": dense_work.interaction(samples, model),
        "top": (*dense_work.mlp(samples, model.top_layers, int(fused)), *sigmoid)}


def whole_us(found: Profiles, software: SoftwareProfile, model: Model, samples: int,
             fused: bool = False) -> float:
    """Return the microseconds of a mini-batch by itself, from host memory to host memory.

    One thread calls copies and operators without waiting for them, or one graph of all; on the
    GPU, one thing is done after the other, none before its call has arrived.
    """
    gpu, copies = GpuTime(found.gpu, software), CopyTime(found.pcie, software)
    part = parts(model, samples, fused)
    inputs = samples * (8 * model.tables + 4 * model.dense)
    graphs = software.graphs
    host = software.graph_us if graphs else 2 * copies.call_us
    done = host + (found.gpu.launch_us if graphs else 0.0)
    done += copies.latency_us(to_gpu=True) + copies.moving_us(inputs)
    for operation in (*part["bottom"], *part["lookup" if graphs else "lookups"],
                      *part["interaction"], *part["top"]):
        each = gpu.kernels(operation)
        for _ in range(operation.operators):
            if not graphs:
                host += gpu.call_us(operation)
                done = max(done, host + found.gpu.launch_us)
            done += each.us
    if not graphs:
        done = max(done, host + copies.call_us)
    return (done + copies.latency_us(to_gpu=False) + copies.moving_us(4 * samples)
            + software.synchronize_us)
