"""Words of a comparison, explained."""

import re
from collections.abc import Iterable

from host.placement.deal import PLACEMENTS

__all__ = ["ABOUT", "OPTIONS", "RESOURCES", "used"]

ABOUT = {
    "bl-tuned": "GPUs alone, tuned by an engineer",
    "bl-paper": "the paper's GPU baseline",
    "cpu-mpi": "CPUs alone, with MPI",
    "fs": "the full system of the paper, GPUs with SmartNICs",
    "en": "EmberNIC, GPUs with SmartNICs that work without the host CPU",
}
"""Systems."""

RESOURCES = {
    "cpu": "the host thread that launches the work",
    "batching": "the host threads that form mini-batches of similar samples",
    "driver": "the host thread of the NIC's driver",
    "gpu": "the GPU's kernels",
    "multipliers": "the multipliers of the card, which compute the MLPs",
    "nccl": "the communicator of NVIDIA's collective library",
    "link": "the network link of a node",
    "pcie_in": "the GPU's PCIe link, towards the GPU",
    "pcie_out": "the GPU's PCIe link, from the GPU",
    "nic": "the SmartNIC with its PCIe and network",
}
"""Resources that can be the bottleneck."""

OPTIONS = {
    "in flight": "mini-batches that a system works on at the same time",
    "per graph": "mini-batches that the host launches as one CUDA graph",
    "fused": "one operator looks up all tables of a node",
    "joined": "the tables of a node form one table",
    "nccl": "GPUs exchange data without host memory",
    "dedupe": "a requester sends each key once",
    "overlap": "the bottom MLP runs during the exchange of vectors",
    "buckets": "the all-reduce of the top MLP runs during the backward pass",
    "host_indices": "hosts exchange the keys by MPI before the GPUs start",
    "one_collective": "an NCCL call exchanges the data of all mini-batches of a graph",
    "direct": "NCCL sends all bytes from GPU to GPU, without a move inside each node first",
    "bags_once": "equal bags of a share are sent, pooled and returned once",
    "grouped": "one NCCL call exchanges keys of a mini-batch and vectors of an earlier one",
    "ring": "a resident kernel gathers rows for the NIC",
    "reads": "the NIC reads rows from GPU memory itself",
    "completion": "the CUDA graph waits for the NIC, not for the host",
    "float16 between nodes": "vectors travel between nodes in values of 16 bits",
    "int8 between nodes": "vectors travel between nodes in values of 8 bits, with a scale and a "
                          "bias for each 32 values",
    "deliver": "vectors that the NIC delivers: a pooled vector per bag, each unique row once, or "
               "results of the interaction",
    "patient": "packets between NICs wait for a round trip to be full",
    "jumbo": "NICs send packets of up to 9,000 bytes",
    "own_at_gpu": "a GPU reads the rows of its own node that its samples need",
    "merge": "a NIC requests a key in flight once",
    "pool at the owner": "the node of the rows sends a vector per bag, instead of each row",
    "updated by the": "the GPUs or the NICs sum the gradients of these tables and update rows",
    "queues": "lookups wait for each owner in a queue of their own",
    "dense": "a kernel notifies the NIC of dense vectors",
    "sizes": "the NIC has larger buffers, where a model needs them",
    "relaunch": "the resident kernel launches the graphs",
    "copies": "every GPU has a copy of each small table",
    **{f"placement {name}": about for name, about in PLACEMENTS.items()},
}
"""Options of systems."""


def used(words: dict[str, str], texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return the words that occur in ``texts``, with their explanations."""
    said = "\n".join(texts)
    return [(word, about) for word, about in words.items()
            if re.search(rf"(?<![\w-]){word}(?![\w-])", said)]
