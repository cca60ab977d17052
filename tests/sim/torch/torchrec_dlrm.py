"""TorchRec program: a DLRM whose tables are sharded over processes. It prints each step's loss.

``torchrec_dlrm.py BACKEND SHARDING STEPS KEYS [OPTIMIZER]``. ``BACKEND``: of ``torch.distributed``.
``SHARDING``: ``table_wise``, ``row_wise`` or ``data_parallel``. ``STEPS``: training steps; a tenth
as many inference steps follow. ``KEYS``: keys per bag. ``OPTIMIZER``: ``SGD`` or
``RowWiseAdagrad``. ``torchrun`` starts several processes.
"""

import os
import sys
from os import environ

import torch
from torch import distributed as dist
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.distributed import sharding_plan as plans
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.types import ShardingPlan
from torchrec.models.dlrm import DLRM
from torchrec.optim import RowWiseAdagrad
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

ROWS, DENSE, SAMPLES = (100, 60, 2000, 7), 5, 16
"""Rows of the tables, dense features, samples of a process and step."""
OPTIMIZERS = {"SGD": torch.optim.SGD, "RowWiseAdagrad": RowWiseAdagrad}
FEATURES = [f"feature{number}" for number in range(len(ROWS))]


def made(sharding: str, size: int, optimizer: str = "SGD") -> DistributedModelParallel:
    """Return the model; FBGEMM's fused optimizer trains its tables, unless they are data-parallel.
    """
    bags = EmbeddingBagCollection(device=torch.device("meta"), tables=[
        EmbeddingBagConfig(name=f"table{number}", embedding_dim=16, num_embeddings=rows,
                           feature_names=[FEATURES[number]]) for number, rows in enumerate(ROWS)])
    model = DLRM(bags, DENSE, [8, 16], [8, 1], torch.device("cpu"))
    if sharding != "data_parallel":
        apply_optimizer_in_backward(OPTIMIZERS[optimizer], bags.parameters(), {"lr": 0.1})
    sharder = EmbeddingBagCollectionSharder()
    plan = plans.construct_module_sharding_plan(bags, {
        f"table{number}": plans.table_wise(number % size) if sharding == "table_wise"
        else getattr(plans, sharding)() for number in range(len(ROWS))}, sharder, size, size, "cpu")
    return DistributedModelParallel(
        model, device=torch.device("cpu"), sharders=[sharder],
        plan=ShardingPlan({"sparse_arch.embedding_bag_collection": plan}))


def main(backend: str, sharding: str, steps: int, keys: int,
         tables: str = "SGD") -> list[float]:
    """Train and infer; return the losses."""
    alone = {} if "RANK" in environ else {
        "rank": 0, "world_size": 1, "init_method": "tcp://localhost:0"}
    dist.init_process_group(backend, **alone)
    torch.manual_seed(1)
    model = made(sharding, dist.get_world_size(), tables)
    optimizer = torch.optim.SGD(model.parameters() if sharding == "data_parallel" else [
        each for name, each in model.named_parameters() if "embedding_bags" not in name], lr=0.1)
    torch.manual_seed(2 + dist.get_rank())
    losses = []
    for step in range(steps + steps // 10):
        values = torch.cat([torch.randint(0, rows, (SAMPLES * keys,)) for rows in ROWS])
        lengths = torch.full((SAMPLES * len(ROWS),), keys, dtype=torch.int32)
        dense, label = torch.rand(SAMPLES, DENSE), torch.randint(0, 2, (SAMPLES, 1)).float()
        with torch.set_grad_enabled(step < steps):
            found = model(dense, KeyedJaggedTensor(FEATURES, values, lengths=lengths))
            loss = torch.nn.functional.binary_cross_entropy_with_logits(found, label)
        losses.append(loss.item())
        # A single write, because processes may share the output.
        print(f"loss {dist.get_rank()} {step} {losses[-1]}\n", end="", flush=True)
        if step < steps:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()
    return losses


if __name__ == "__main__":
    torch.set_num_threads(1)  # more threads are slower on busy processors
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5]), *sys.argv[5:])
    if sys.argv[1] == "gloo":
        # PyTorch 2.13 sometimes aborts here, because a thread outlives the interpreter.
        os._exit(0)
