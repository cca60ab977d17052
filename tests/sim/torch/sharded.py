"""PyTorch program with several processes that hold whole tables and exchange vectors.

``torchrun`` starts ``sharded.py BACKEND STEPS KEYS WHAT``. ``WHAT`` is ``train``, ``look``, or
``PROCESS:END`` to end a process early. The program prints a loss for each step.
"""

import os
import sys

import torch
from torch import distributed

ROWS = (50, 7, 300, 20, 9)
SAMPLES, DIMENSION = 12, 16


class Exchange(torch.autograd.Function):
    """Exchange of vectors: from some tables and all samples to all tables and some samples."""

    @staticmethod
    def forward(ctx, vectors, tables):
        rank, size = distributed.get_rank(), distributed.get_world_size()
        ctx.mine, ctx.each = [len(vectors[0]) // size * DIMENSION * len(tables[rank])] * size, [
            len(vectors[0]) // size * DIMENSION * len(one) for one in tables]
        got = vectors.new_empty(sum(ctx.each))
        distributed.all_to_all_single(
            got, vectors.view(len(vectors), size, -1).transpose(0, 1).reshape(-1), ctx.each,
            ctx.mine)
        return got.view(-1, len(vectors[0]) // size, DIMENSION).transpose(0, 1)

    @staticmethod
    def backward(ctx, gradients):
        got = gradients.new_empty(sum(ctx.mine))
        distributed.all_to_all_single(got, gradients.transpose(0, 1).reshape(-1), ctx.mine,
                                      ctx.each)
        size = len(ctx.mine)
        tables = ctx.mine[0] // (len(gradients) * DIMENSION)
        return got.view(size, tables, len(gradients), DIMENSION).transpose(0, 1).reshape(
            tables, -1, DIMENSION), None


def work(backend: str, steps: int, keys: int, what: str, **known) -> None:
    """Run a process.

    known: arguments of ``init_process_group`` without ``torchrun``.
    """
    distributed.init_process_group(backend, **known)
    rank, size = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(1)
    weights = [torch.randn(rows, DIMENSION) for rows in ROWS]
    tables = [range(len(ROWS))[first::size] for first in range(size)]
    bags = [torch.nn.EmbeddingBag(ROWS[table], DIMENSION, mode="sum", _weight=weights[table])
            for table in tables[rank]]
    top = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(len(ROWS) * DIMENSION, 1))
    optimizer = torch.optim.SGD([*top.parameters(), *(bag.weight for bag in bags)], lr=0.01)
    for step in range(steps):
        indices = [torch.randint(0, rows, (SAMPLES * keys,)) for rows in ROWS]
        if what.startswith(f"{rank}:") and step == steps // 2:
            if what.endswith("killed"):
                os.kill(os.getpid(), 9)
            if what.endswith("raises"):
                raise RuntimeError("of mine")
            indices[rank][0] = 1000
        with torch.set_grad_enabled(what == "train"):
            vectors = torch.stack([bag(indices[table], torch.arange(0, SAMPLES * keys, keys))
                                   for bag, table in zip(bags, tables[rank])])
            mine = Exchange.apply(vectors, tables)
            loss = (top(mine.reshape(len(mine), -1)) - 1).square().mean()
        if what == "train":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(loss.item())
    distributed.destroy_process_group()


if __name__ == "__main__":
    backend, steps, keys, what = sys.argv[1:]
    work(backend, int(steps), int(keys), what)
