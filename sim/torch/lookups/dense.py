"""MLPs of a PyTorch program, recognised by the shapes of its linear layers."""

from collections import Counter
from dataclasses import dataclass, field, replace

from host.model import MOST_VALUES, Model

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


def with_mlps(model: Model, chains: Chains, like: Model) -> tuple[Model, list[str]]:
    """Return ``model`` with the MLPs and the interaction of a program, and notes on unrecognised
    MLPs.

    The top MLP is the most frequent chain that ends in a single value. The bottom MLP is the most
    frequent chain with which the interaction has the width of the top MLP's input.

    like: model whose MLPs replace unrecognised MLPs.
    """
    chains.end()
    top, bottom, notes = _most(chains, 1), _most(chains, model.dimension), []
    for kind, itself, width in _interactions(model, top[0] if top else 0):
        chain = _most(chains, width)
        if top is not None and chain is not None:
            found = replace(model, dimension=width, dimensions=model.table_dimensions,
                            dense=chain[0], bottom=chain[1:], top=top[1:], interaction=kind,
                            interaction_itself=itself)
            if found.interaction_width == top[0]:
                return found, []
    if bottom is None or model.dimension == 1:
        bottom = (like.dense, *like.bottom)
        notes.append(f"no bottom MLP was recognised: times assume the bottom MLP of {like.name}")
    if top is None:
        top = (0, *like.top)
        notes.append(f"no top MLP was recognised: times assume the top MLP of {like.name}")
    found = replace(model, dense=bottom[0], bottom=(*bottom[1:-1], model.dimension), top=top[1:])
    if top[0]:
        assumed = {"dot": "dot products", "cat": "a concatenation"}[found.interaction]
        notes.append(f"the top MLP takes {top[0]} values, which fit neither dot products nor a "
                     f"concatenation of {found.tables + 1} vectors: times assume {assumed}")
    return found, notes


def _interactions(model: Model, inputs: int) -> list[tuple[str, bool, int]]:
    """Return interaction, whether it includes a vector with itself, and width of the dense vector,
    for each interaction that a top MLP of ``inputs`` values allows."""
    dots = [("dot", itself, model.dimension) for itself in (False, True)
            if not model.dimensions and model.dimension > 1]
    joined = inputs - sum(model.table_dimensions)
    return [*dots, *([("cat", False, joined)] if 1 < joined <= MOST_VALUES else [])]


def _most(chains: Chains, width: int) -> tuple[int, ...] | None:
    found = [(count, chain) for chain, count in chains.seen.items() if chain[-1] == width]
    return max(found)[1] if found else None
