"""MLPs of a PyTorch program, recognised by the shapes of its linear layers."""

from collections import Counter
from dataclasses import dataclass, field, replace

from host.model import Model

__all__ = ["Chains", "with_mlps"]


@dataclass
class Chains:
    """Chains of linear layers: each layer takes the output of the previous layer.

    seen: number of occurrences of each chain, a tuple of its input width and its layers' widths.
    """

    seen: Counter[tuple[int, ...]] = field(default_factory=Counter)
    _chain: list[int] = field(default_factory=list)
    _samples: int = 0

    def add(self, samples: int, inputs: int, outputs: int) -> None:
        """Add a linear layer to the current chain, or begin a new chain."""
        if self._chain and (self._samples, self._chain[-1]) == (samples, inputs):
            self._chain.append(outputs)
            return
        self.end()
        self._samples, self._chain = samples, [inputs, outputs]

    def end(self) -> None:
        """End the current chain."""
        if self._chain:
            self.seen[tuple(self._chain)] += 1
            self._chain = []


def with_mlps(model: Model, chains: Chains, dimension: int, like: Model) -> tuple[Model, list[str]]:
    """Return ``model`` with the MLPs of a program, and notes on unrecognised MLPs.

    The bottom MLP is the most frequent chain that ends in ``dimension`` values. The top MLP is the
    most frequent chain that ends in a single value.

    like: model whose MLPs replace unrecognised MLPs.
    """
    chains.end()
    bottom, top = (_most(chains, width) for width in (dimension, 1))
    notes = []
    if bottom is None or dimension == 1:
        bottom = (like.dense, *like.bottom)
        notes.append(f"no bottom MLP was recognised: times assume the bottom MLP of {like.name}")
    if top is None:
        top = (0, *like.top)
        notes.append(f"no top MLP was recognised: times assume the top MLP of {like.name}")
    found = replace(model, dense=bottom[0], bottom=(*bottom[1:-1], model.dimension), top=top[1:])
    if top[0]:
        kinds = [replace(found, interaction=kind, interaction_itself=itself)
                 for kind, itself in (("dot", False), ("dot", True), ("cat", False))]
        fitting = [each for each in kinds if _width(each, dimension) == top[0]]
        if fitting:
            return fitting[0], notes
        notes.append(f"the top MLP takes {top[0]} values, which fit neither dot products nor a "
                     f"concatenation of {found.tables + 1} vectors: times assume dot products")
    return found, notes


def _width(model: Model, dimension: int) -> int:
    """Return the width of the interaction for vectors of ``dimension`` values."""
    vectors = model.tables + 1
    more = dimension - model.dimension
    return model.interaction_width + more * (vectors if model.interaction == "cat" else 1)


def _most(chains: Chains, width: int) -> tuple[int, ...] | None:
    found = [(count, chain) for chain, count in chains.seen.items() if chain[-1] == width]
    return max(found)[1] if found else None
