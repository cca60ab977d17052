"""Causes of a stuck cluster: the waits of each node, and the waits that explain the others."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["causes_of", "explanation", "node_names", "step_waits"]

_NAMED = 4
"""Most causes that a message states in full."""

_EPOCH, _GIVEN_UP, _EDGE, _LOCAL, _CREDIT, _PEERS, _HELD, _SAMPLES, _SUMS, _ROWS = range(10)
"""Ranks of causes: a lower rank may be the cause of a higher rank. `_EDGE` and `_LOCAL` causes are
in the waiting node. `_SUMS`: sums of a step are missing; `_ROWS`: only its rows are missing."""

_EDGES = {"host_tx": ("host", "the host of node {node} takes nothing from its NIC"),
          "net_tx": ("network", "the network takes nothing from node {node}")}

_SILENT = {"host": "the host of node {node} is silent",
           "gpu": "the GPU of node {node} completes no gather",
           "network": "the network takes nothing from node {node}"}


def node_names(numbers: Iterable[int]) -> str:
    """Return nodes in words: ``node 1``, ``nodes 1 and 2``, ``nodes 1, 2 and 3``."""
    *first, last = map(str, sorted(numbers))
    return f"nodes {', '.join(first)} and {last}" if first else f"node {last}"


def step_waits(node: int, counters: Sequence[Mapping[str, int]], unwritten: Sequence[int],
               lost: Sequence[int]) -> tuple[str, Sequence[int]]:
    """Return whether ``node`` waits for ``sums`` or for ``rows`` to end a step, and for which
    nodes.

    Every node reports the end of its sums, and then the end of its rows, to every other node.

    counters: counters of each NIC.
    unwritten: nodes with unwritten rows.
    lost: nodes whose reports or sums the network lost on the way to ``node``.
    """
    ended = counters[node]["step_barrier.steps"]
    if counters[node]["step_counter.steps"] <= ended:
        return "sums", lost or [number for number, count in enumerate(counters)
                                if count["gradient_sender.ends"] <= ended]
    return "rows", lost or [number for number, count in enumerate(counters)
                            if number in unwritten or count["step_counter.steps"] <= ended]


def causes_of(states: Sequence[Mapping]) -> list[dict]:
    """Return the causes outside the NICs for which nodes wait, the likeliest root cause first.

    ``states``: of each node, see :func:`sim.cluster.stuck.diagnose`. A cause has ``part``, the
    waiting ``node``, ``peers`` (for which it waits), ``peer`` (the first of them, or None),
    ``means`` and ``rank``.
    """
    found = [cause for state in states for cause in _of_node(state)]
    votes = Counter(peer for state in states for peer in state["given_up"])
    # The peers that most nodes have given up are first: a disconnected node gives up every healthy
    # node.
    return sorted([*_other_epochs(states), *found], key=lambda cause: (
        cause["rank"], -votes[cause["peer"]] if cause["rank"] == _GIVEN_UP else 0))


def explanation(causes: Sequence[Mapping]) -> str:
    """Return in one line the causes that explain all others; empty if there is no cause.

    These are the peers that most nodes have given up, and the parts of a node that do not answer
    their own NIC. Without such a cause, they are all causes of the lowest rank.
    """
    roots = [cause["means"] for cause in causes if cause["rank"] == _EPOCH]
    given_up = [cause for cause in causes if cause["rank"] == _GIVEN_UP and not roots]
    if given_up:
        by = {peer: sorted(c["node"] for c in given_up if c["peer"] == peer)
              for peer in sorted({c["peer"] for c in given_up})}
        most = max(map(len, by.values()))
        roots = [f"node {nodes[0]} has given up node {peer}, which did not acknowledge a packet "
                 f"that was repeatedly sent"
                 + (f", as {'have' if most > 2 else 'has'} {node_names(nodes[1:])}" if most > 1
                    else "")
                 for peer, nodes in by.items() if len(nodes) == most]
    # Only the likeliest cause of each node.
    local = list({cause["node"]: cause for cause in reversed(causes)
                  if _EDGE <= cause["rank"] <= _LOCAL}.values())
    told = sorted(local, key=lambda cause: (cause["rank"], cause["node"]))
    if not roots and not told:
        told = [cause for cause in causes if cause["rank"] == causes[0]["rank"]]
        # A disconnected node neither sends nor receives: others wait for it, and it waits for all
        # of them.
        votes = Counter(peer for cause in told for peer in cause["peers"])
        most = max(votes.values(), default=0)
        told = [cause for cause in told
                if not most or any(votes[peer] == most for peer in cause["peers"])]
    more = {cause["node"] for cause in told[_NAMED:]}
    return "; ".join([*roots, *(cause["means"] for cause in told[:_NAMED]),
                      *([f"likewise {node_names(more)}"] if more else [])])


def _other_epochs(states: Sequence[Mapping]) -> list[dict]:
    """Return a cause for each node whose epoch differs from the epoch of most nodes.

    If two epochs have equally many nodes, the older epoch is wrong. Epochs wrap at 256.
    """
    epochs = {state["node"]: state["link_epoch"] for state in states}
    counts = Counter(epochs.values())
    if len(counts) < 2:
        return []
    usual = max(counts, key=lambda epoch: (counts[epoch], sum(
        (epoch - other) % 256 < 128 for other in counts)))
    rest = [node for node, epoch in epochs.items() if epoch == usual]
    return [{"rank": _EPOCH, "part": "peers", "node": rest[0], "peer": node, "peers": [node],
             "means": f"link_epoch of node {node} is {epoch}, of {node_names(rest)} {usual}: they "
                      f"reject each other's packets; give all nodes of a run the same link_epoch"}
            for node, epoch in epochs.items() if epoch != usual]


def _of_node(state: Mapping) -> list[dict]:
    """Return the causes outside its NIC for which a node waits."""
    node, channels = state["node"], {c["name"]: c for c in state["channels"]}
    owed, unsent = state["owed"], state["unsent"]
    found: list[dict] = []

    def since(stream: str, happened: str = "brought nothing") -> str:
        if stream not in channels:  # a modelled NIC shows no streams
            return ""
        last = channels[stream]["last"]
        return f"; {stream} {happened} " + ("ever" if last is None else f"since cycle {last:,}")

    def add(rank: int, part: str, means: str, peers: Sequence[int] = ()) -> None:
        found.append({"rank": rank, "part": part, "node": node,
                      "peer": peers[0] if peers else None, "peers": peers, "means": means})

    for edge, (part, means) in _EDGES.items():
        if edge in channels and channels[edge]["valid"] and not channels[edge]["ready"]:
            last = channels[edge]["last"]
            add(_EDGE, part, f"{means.format(node=node)} "
                f"{'ever' if last is None else f'since cycle {last:,}'}, {edge} holds a beat")
    if state["bad_acknowledgements"]:
        add(_EPOCH, "peers", f"peers acknowledge packets that node {node} has not sent: it was "
            f"restarted with its old link_epoch; give all nodes of a run a new link_epoch", [node])
    for peer in state["given_up"]:
        add(_GIVEN_UP, "peers", f"node {node} has given up node {peer}, which did not acknowledge "
            f"a packet that was repeatedly sent", [peer])
    # Before the answers of the GPU, which pass through the host.
    if unsent:
        add(_EDGE, "host", f"the host of node {node} does not send {unsent} packets to its NIC"
            + since("host_rx"))
    if owed["gpu"]:
        add(_LOCAL, "gpu", f"node {node} waits for {owed['gpu']} rows of its GPU, whose vectors "
            f"have not arrived" + since("host_parser.vectors", "brought none"))
    if owed.get("gpu_bags"):
        add(_LOCAL, "gpu", f"node {node} waits for {owed['gpu_bags']} vectors of bags of its GPU, "
            f"which have not arrived" + since("host_parser.bag_vectors", "brought none"))
    if owed["host"]:
        add(_LOCAL, "host", f"the host of node {node} owes {owed['host']} dense vectors"
            + since("host_parser.dense", "brought none"))
    if owed["written"]:
        add(_LOCAL, "gpu", f"{owed['written']} rows and states that node {node} sent its host, or "
            f"asked it for, are neither written nor read" + since("host_parser.written"))
    for part in state["silent"]:
        if not any(cause["part"] == part and cause["rank"] in (_EDGE, _LOCAL) for cause in found):
            add(_EDGE if part != "gpu" else _LOCAL, part, _SILENT[part].format(node=node))
    if "lookup_packager.stall_credit" in state["counting"]:
        peer = state["lookups_for"]
        add(_CREDIT, "peers", f"lookups of node {node} wait for credit of node {peer}, which has "
            f"returned too few credits", [peer])
    if "bag_packager.stall_credit" in state["counting"]:
        add(_CREDIT, "peers", f"bags of node {node} wait for credit of their owner, which has "
            f"returned too few credits")
    if owed.get("peer_bags"):
        peers = state["owing"]
        add(_PEERS, "peers", f"node {node} waits for {owed['peer_bags']} vectors of bags of other "
            f"nodes{f' ({node_names(peers)})' if peers else ''}"
            + since("net_parser.bag_vectors", "brought none"), peers)
    if owed["peers"]:
        peers = state["owing"]
        add(_PEERS, "peers", f"node {node} waits for {owed['peers']} vectors of other "
            f"nodes{f' ({node_names(peers)})' if peers else ''}"
            + since("net_parser.vectors", "brought none"), peers)
    if state["gradients_waiting"]:
        add(_HELD, "host", f"the host of node {node} holds back {state['gradients_waiting']} "
            f"packets of gradients for lack of credit" + since("host_tx", "took nothing"))
    if state["step_open"] and not state["unanswered"]:
        what, peers = state["step_waits"]
        add(_SUMS if what == "sums" else _ROWS, "peers", f"node {node} waits for the end of a "
            f"step: the {what} of {node_names(peers) if peers else 'other nodes'} are missing"
            + since("net_parser.steps", "brought none"), peers)
    if state["queries_waiting"]:
        add(_HELD, "host", f"the host of node {node} holds back {state['queries_waiting']} query "
            f"packets for lack of credit" + since("host_tx", "took nothing"))
    if state["unanswered"]:
        add(_SAMPLES, "host", f"{state['unanswered']} samples of node {node} are not answered"
            + since("host_rx") + since("host_tx", "took nothing").replace(";", ","))
    return found
