"""Collectives of ``torch.distributed`` with the expected result of each.

As a program, it runs every ordered pair of collectives in a process group ``embernic``, or ends the
last process early: ``collectives.py PROCESSES STORE [dies]``.
"""

import itertools
import json
import multiprocessing
import os
import sys
import warnings

import torch
from torch import distributed as dist

from sim.torch.catching.process_group import EmberNicGroup, register

warnings.simplefilter("ignore", FutureWarning)  # older names of two collectives, which scripts use


def _of(value: float) -> torch.Tensor:
    return torch.full((4,), float(value))


def _each(count: int) -> torch.Tensor:
    return torch.arange(count).repeat_interleave(4).float()


def all_reduce(rank: int, size: int) -> None:
    given = _of(rank)
    dist.all_reduce(given)
    assert (given == size * (size - 1) / 2).all()


def broadcast(rank: int, size: int) -> None:
    given = _of(rank)
    dist.broadcast(given, size - 1)
    assert (given == size - 1).all()


def reduce(rank: int, size: int) -> None:
    given = _of(rank)
    dist.reduce(given, 0)
    assert rank or (given == size * (size - 1) / 2).all()


def all_gather(rank: int, size: int) -> None:
    got = [_of(-1) for _ in range(size)]
    dist.all_gather(got, _of(rank))
    assert torch.equal(torch.cat(got), _each(size))


def all_gather_into_tensor(rank: int, size: int) -> None:
    got = torch.zeros(4 * size)
    dist.all_gather_into_tensor(got, _of(rank))
    assert torch.equal(got, _each(size))


def gather(rank: int, size: int) -> None:
    got = [_of(-1) for _ in range(size)] if rank == 0 else None
    dist.gather(_of(rank), got, 0)
    assert got is None or torch.equal(torch.cat(got), _each(size))


def scatter(rank: int, size: int) -> None:
    got = _of(-1)
    dist.scatter(got, [_of(k) for k in range(size)] if rank == 0 else None, 0)
    assert (got == rank).all()


def reduce_scatter(rank: int, size: int) -> None:
    got = _of(-1)
    dist.reduce_scatter(got, [_of(k) for k in range(size)])
    assert (got == rank * size).all()


def reduce_scatter_tensor(rank: int, size: int) -> None:
    got = _of(-1)
    dist.reduce_scatter_tensor(got, _each(size))
    assert (got == rank * size).all()


def all_to_all(rank: int, size: int) -> None:
    got = [_of(-1) for _ in range(size)]
    dist.all_to_all(got, [_of(100 * rank + k) for k in range(size)])
    assert torch.equal(torch.cat(got), 100 * _each(size) + rank)


def all_to_all_single(rank: int, size: int) -> None:
    """Process k receives k + 1 numbers from each process."""
    got = torch.zeros(size * (rank + 1))
    counts = [k + 1 for k in range(size)]
    dist.all_to_all_single(got, torch.full((sum(counts),), float(rank)), [rank + 1] * size, counts)
    assert torch.equal(got, torch.arange(size).repeat_interleave(rank + 1).float())


def barrier(rank: int, size: int) -> None:
    dist.barrier()


def ring(rank: int, size: int) -> None:
    got = _of(-1)
    sent, received = dist.isend(_of(rank), (rank + 1) % size), dist.irecv(got, (rank - 1) % size)
    assert sent is not None and received is not None
    sent.wait()
    received.wait()
    assert (got == (rank - 1) % size).all()


def objects(rank: int, size: int) -> None:
    got: list = [None] * size
    dist.all_gather_object(got, {"rank": rank})
    assert [each["rank"] for each in got] == list(range(size))


def object_list(rank: int, size: int) -> None:
    given = [rank]
    dist.broadcast_object_list(given, 0)
    assert given == [0]


EVERY = (all_reduce, broadcast, reduce, all_gather, all_gather_into_tensor, gather, scatter,
         reduce_scatter, reduce_scatter_tensor, all_to_all, all_to_all_single, barrier, ring,
         objects, object_list)


def work(rank: int, size: int, store: str, dies: bool) -> None:
    """Run the collectives of a process; the first process prints its record."""
    register()
    torch.set_num_threads(1)
    dist.init_process_group("embernic", init_method=f"file://{store}", rank=rank, world_size=size)
    for first, second in itertools.product(EVERY, EVERY):
        if dies and rank == size - 1 and first is reduce:
            os._exit(9)
        first(rank, size)
        second(rank, size)
    if rank == 0:
        [group] = EmberNicGroup.made
        print(json.dumps(group.record))
    dist.destroy_process_group()


if __name__ == "__main__":
    count, place, *more = sys.argv[1:]
    # PyTorch is imported once.
    forked = multiprocessing.get_context("fork")
    processes = [forked.Process(target=work, args=(rank, int(count), place, bool(more)))
                 for rank in range(int(count))]
    for process in processes:
        process.start()
    for process in processes:
        process.join(100)
    ends = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
    sys.exit(f"exit statuses {ends}" if any(ends) else 0)
