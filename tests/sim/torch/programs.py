"""PyTorch programs for tests: a small DLRM, and functions that run it on a session."""

import pytest
import torch

from sim.torch.catching.capture import capturing
from sim.torch.catching.session import Session
from sim.torch.options import TorchOptions

__all__ = ["ROWS", "Concatenated", "Dlrm", "attached_to", "mini_batches", "trained", "with_threads"]

ROWS = (50, 7, 300)


def with_threads(count: int):
    """Return a fixture that sets PyTorch's number of threads in every test of a file."""
    @pytest.fixture(autouse=True)
    def threads():
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        yield
        torch.set_num_threads(before)

    return threads


class Dlrm(torch.nn.Module):
    """A DLRM with a table for each of ``rows``; default dimension 16."""

    def __init__(self, rows=ROWS, dimension: int = 16, **options):
        super().__init__()
        torch.manual_seed(3)
        self.bags = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(count, dimension, **{"mode": "sum"} | options)
            for count in rows)
        vectors = len(rows) + 1
        self.bottom = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(),
                                          torch.nn.Linear(8, dimension), torch.nn.ReLU())
        self.top = torch.nn.Sequential(
            torch.nn.Linear(dimension + vectors * (vectors - 1) // 2, 8), torch.nn.ReLU(),
            torch.nn.Linear(8, 1))
        self.pairs = torch.tril_indices(vectors, vectors, -1)

    def forward(self, dense, indices, offsets):
        bottom = self.bottom(dense)
        vectors = torch.stack([bottom, *(bag(*each) for bag, each in zip(
            self.bags, zip(indices, offsets)))], dim=1)
        dots = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([bottom, dots], dim=1))


class Concatenated(Dlrm):
    """A DLRM that concatenates a vector of 20 values with those of its tables."""

    def __init__(self, dimensions=(16, 10, 48), modes=("sum", "sum", "mean"), rows=ROWS):
        super().__init__(rows, 20)
        self.bags = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(count, dimension, mode=mode)
            for count, dimension, mode in zip(rows, dimensions, modes))
        self.top = torch.nn.Sequential(
            torch.nn.Linear(20 + sum(dimensions), 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))

    def forward(self, dense, indices, offsets):
        return self.top(torch.cat([self.bottom(dense), *(bag(*each) for bag, each in zip(
            self.bags, zip(indices, offsets)))], dim=1))


def mini_batches(count: int, samples: int = 12, keys: int = 1, rows=ROWS):
    """Return dense features, indices and offsets of mini-batches with bags of the given lengths."""
    torch.manual_seed(5)
    return [(torch.rand(samples, 5),
             [torch.randint(0, each, (samples * keys,)) for each in rows],
             [torch.arange(0, samples * keys, keys) for _ in rows]) for _ in range(count)]


def trained(model: Dlrm, batches, train: bool = True, optimizer=None) -> list[float]:
    """Return the losses of a program that trains, by default with SGD, or only infers."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for batch in batches:
        with torch.set_grad_enabled(train):
            loss = (model(*batch) - 1).square().mean()
        losses.append(loss.item())
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return losses


def attached_to(program, **options) -> tuple[Session, dict]:
    """Run ``program()`` on a session; return the ended session and the lookups that were not
    caught."""
    session = Session(TorchOptions(**{"nodes": 2, "config": "tiny", "threads": 1} | options))
    with capturing(session, lambda line: None) as capture:
        program()
    session.finish()
    return session, dict(capture.missed)
