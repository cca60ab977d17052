"""A sharded TorchRec DLRM; each process is a node. See docs/pytorch.md."""

import torch
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.models.dlrm import DLRM
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

torch.distributed.init_process_group("embernic")
tables = [EmbeddingBagConfig(name=f"t{n}", num_embeddings=rows, embedding_dim=16,
                             feature_names=[f"f{n}"]) for n, rows in enumerate((1000, 50, 20000))]
bags = EmbeddingBagCollection(tables=tables, device=torch.device("meta"))
apply_optimizer_in_backward(torch.optim.SGD, bags.parameters(), {"lr": 0.1})
model, sharders = DLRM(bags, 13, [32, 16], [32, 1]), [EmbeddingBagCollectionSharder()]
plan = EmbeddingShardingPlanner(
    Topology(torch.distributed.get_world_size(), "cpu"),
    constraints={table.name: ParameterConstraints(sharding_types=["table_wise"])
                 for table in tables}).collective_plan(model, sharders)
model = DistributedModelParallel(model, device=torch.device("cpu"), plan=plan, sharders=sharders)
for _step in range(8):
    keys = torch.cat([torch.randint(0, table.num_embeddings, (64,)) for table in tables])
    features = KeyedJaggedTensor(["f0", "f1", "f2"], keys, lengths=torch.ones(192).int())
    (model(torch.rand(64, 13), features) - 1).square().mean().backward()
torch.distributed.destroy_process_group()
