"""Operators of a DLRM at several sizes, to lay the models of them beside: nothing is derived."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from host.calibrate.gpu.device import Act, Device
from host.calibrate.reading import Reading, reading
from host.devices import dense_work, embedding_work
from host.devices.operation import Operation
from host.model import MODELS, Model

__all__ = ["SAMPLES", "Case", "cases", "check"]

SAMPLES = (32, 128, 512, 2048)


@dataclass(frozen=True)
class Case:
    """One operator at one size.

    Members: ``name`` with the size; ``operations`` of the model, as many as ``make(device)()``
    calls operators.
    """

    name: str
    operations: tuple[Operation, ...]
    make: Callable[[Device], Act]

    @property
    def reading(self) -> str:
        """Name of its reading."""
        return f"check.{self.name.replace(' ', '_').replace('.', '_')}_us"


def check(device: Device) -> Iterator[Reading]:
    """Yield the time of each of `cases` of Kaggle's model, called and waited for."""
    for count in device.sizes.batches(SAMPLES):
        for case in cases(MODELS["kaggle"], count):
            yield reading(case.reading, device.times(case.make(device)),
                          "called from Python, with the wait")


def cases(model: Model, samples: int) -> Iterator[Case]:
    """Yield the operators of ``model`` for a mini-batch of ``samples``."""
    tables, width = model.tables, model.dimension
    lookups, vectors = samples * tables, tables + 1
    space = 1 << 20
    forward = dense_work.interaction(samples, model)

    def where(device: Device):
        return device.indices(lookups, space)

    def gather(device: Device) -> Act:
        torch, table, rows = device.torch, device.floats(space, width), where(device)
        offsets = torch.arange(0, lookups, device=device.kind)
        return lambda: torch.nn.functional.embedding_bag(rows, table, offsets, mode="sum")

    yield Case(f"gather {lookups} rows of {4 * width} B",
               (embedding_work.gather(lookups, lookups, width),), gather)

    for inputs, outputs in dict.fromkeys((*model.bottom_layers, *model.top_layers)):
        def linear(device: Device, inputs: int = inputs, outputs: int = outputs) -> Act:
            data, weight = device.floats(samples, inputs), device.floats(inputs, outputs)
            bias = device.floats(outputs)
            return lambda: device.torch.addmm(bias, data, weight)

        yield Case(f"linear {samples} x {inputs} x {outputs}",
                   (dense_work.linear(samples, inputs, outputs),), linear)

    def elementwise(device: Device) -> Act:
        values = device.floats(samples, 512)
        return lambda: device.torch.relu(values)

    yield Case(f"elementwise {samples * 512}", (dense_work.elementwise(samples * 512),),
               elementwise)

    def concat(device: Device) -> Act:
        parts = [device.floats(samples, width) for _ in range(vectors)]
        return lambda: device.torch.cat(parts, 1)

    yield Case(f"concat {vectors} of {samples} x {width}",
               (dense_work.concat(samples * vectors * width),), concat)

    def transpose(device: Device) -> Act:
        joined = device.floats(samples, vectors, width)
        return lambda: joined.transpose(1, 2).contiguous()

    yield Case(f"transpose {samples} x {vectors} x {width}",
               (dense_work.transpose(samples * vectors * width),), transpose)

    def pairs(device: Device) -> Act:
        joined = device.floats(samples, vectors, width)
        turned = joined.transpose(1, 2)
        return lambda: device.torch.bmm(joined, turned)

    yield Case(f"pairs {samples} x {vectors} x {width}", forward[1:2], pairs)

    def flatten(device: Device) -> Act:
        row, column = device.torch.tril_indices(vectors, vectors, -1, device=device.kind)
        square = device.floats(samples, vectors, vectors)
        return lambda: square[:, row, column]

    yield Case(f"flatten {samples} x {vectors * (vectors - 1) // 2}", forward[2:3], flatten)

    def pairs_backward(device: Device) -> Act:
        square = device.floats(samples, vectors, vectors)
        joined = device.floats(samples, vectors, width)
        return lambda: device.torch.bmm(square, joined)

    yield Case(f"pairs_backward {samples} x {vectors} x {width}",
               dense_work.interaction_backward(samples, model)[2:3], pairs_backward)

    def layout(device: Device) -> Act:
        rows = where(device)
        return lambda: rows.view(tables, -1).t().contiguous()

    yield Case(f"layout {lookups} indices", (embedding_work.layout(lookups),), layout)

    def unique(device: Device) -> Act:
        rows = where(device)
        return lambda: device.torch.unique(rows, return_inverse=True)

    yield Case(f"unique {lookups} keys", (embedding_work.unique(lookups),), unique)

    half = max(1, lookups // 2)

    def segment_sum(device: Device) -> Act:
        gradients, groups = device.floats(lookups, width), where(device) % half
        sums = device.floats(half, width)
        return lambda: sums.index_add_(0, groups, gradients)

    yield Case(f"segment_sum {lookups} vectors of {4 * width} B",
               (embedding_work.segment_sum(lookups, half, width),), segment_sum)

    def scatter_update(device: Device) -> Act:
        table, rows = device.floats(space, width), where(device)
        gradients = device.floats(lookups, width)
        return lambda: table.index_add_(0, rows, gradients, alpha=-0.1)

    yield Case(f"scatter_update {lookups} rows of {4 * width} B",
               (embedding_work.scatter_update(lookups, width),), scatter_update)
