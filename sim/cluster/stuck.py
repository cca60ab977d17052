"""Diagnosis of a stuck cluster: the state of every stream, and what waits for what."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from rtl.monitor.channels import channel_map
from sim.cluster.cluster import Cluster
from sim.cluster.frame_faults import lost_frames
from sim.cluster.watchdog import StuckError
from sim.nic.registers import RegisterFile
from sim.node.protocol import ClusterNode

__all__ = ["diagnose", "stuck_table"]

_EDGES = {"host_tx": ("host", "the host of node {node} takes nothing from its NIC"),
          "net_tx": ("network", "the network takes nothing from node {node}")}


def diagnose(cluster: Cluster, registers: Sequence[RegisterFile], error: StuckError) -> dict:
    """Return the state of every NIC of a stuck cluster, and the likely causes.

    ``message``: one line. ``since``: cycle of the last movement. ``causes``: what a NIC waits for
    outside itself, the likeliest root cause first: ``part``, ``node`` (which waits), ``peer`` (for
    which it waits, or None), ``means``. ``nodes``: for each node its ``channels``, every stream
    with ``name``, ``to``, ``valid``, ``ready``, ``beats`` and ``last``, the cycle of the last beat
    or None; ``waits``, the streams under back-pressure, with ``behind``, the blocked output streams
    of the block that should take the beat; ``owed``, outstanding answers of ``gpu``, ``host``
    (dense vectors) and ``peers``, and rows and optimizer states of training not yet ``written``;
    ``given_up``, peers that do not acknowledge;
    ``counting``, stall counters that are still rising; ``unanswered`` samples; ``unsent``, packets
    that the host has for its NIC and does not send, those that answer for its GPU among them;
    ``queries_waiting`` and ``gradients_waiting``, packets that the host holds back for lack of
    credit; ``step_open``, whether a step of training is open.
    """
    nodes = [_node(node, file) for node, file in zip(cluster.nodes, registers)]
    found = sorted((cause for state in nodes for cause in _causes(state)),
                   key=lambda cause: cause["rank"])
    causes = [{name: value for name, value in cause.items() if name != "rank"} for cause in found]
    means = causes[0]["means"] if causes else "no NIC waits for anything: something was lost"
    lost = lost_frames(cluster.exchange.injected, cluster.exchange.full_frames)
    return {"message": "; ".join(filter(None, (f"{error}: {means}", lost))), "since": error.since,
            "causes": causes, "nodes": nodes}


def _node(node: ClusterNode, registers: RegisterFile) -> dict:
    # Streams first: reading a register lets the NIC run on.
    state = node.engine.channels()
    takers = channel_map(*(name in registers.names for name in ("training", "link_epoch")))
    channels = [
        {"name": name, "to": takers[name], "valid": bool(valid), "ready": bool(ready),
         "beats": int(beats), "last": int(last) if last >= 0 else None}
        for name, valid, ready, beats, last in zip(takers, *state)]
    before, after = registers.counters(), registers.counters()
    counting = [name for name, count in after.items()
                if name.partition(".")[2].startswith("stall_") and count != before[name]]
    owed = {part: after[f"{block}.asked"] - after[f"{block}.answered"] & 0xFFFFFFFF
            for part, block in (("gpu", "gpu_answers"), ("host", "dense_answers"),
                                ("peers", "peer_answers"))}
    owed["written"] = 0 if node.training is None else node.training.memory.unfinished
    return {"node": node.number, "channels": channels, "waits": _waits(channels), "owed": owed,
            "counting": counting,
            "given_up": _given_up(registers),
            "lookups_for": registers.read("lookup_next_node")["lookup_next_node"],
            "unanswered": node.unanswered, "unsent": node.packets_unsent,
            "queries_waiting": node.queries_waiting,
            "gradients_waiting": 0 if node.training is None else node.training.waiting,
            "step_open": node.training is not None and node.training.finished is None}


def _given_up(registers: RegisterFile) -> list[int]:
    """Return the nodes that a NIC with a reliable link has given up."""
    names = [name for name in registers.names if name.startswith("link_given_up")]
    values = registers.read(*names) if names else {}
    return [32 * word + bit for word, name in enumerate(names) for bit in range(32)
            if values[name] >> bit & 1]


def _waits(channels: Sequence[Mapping]) -> list[dict]:
    """Return the streams under back-pressure, and what blocks the block that each leads to."""
    held = [channel for channel in channels if channel["valid"] and not channel["ready"]]
    return [{"stream": channel["name"], "for": channel["to"],
             "behind": [other["name"] for other in held
                        if other["name"].partition(".")[0] == channel["to"]],
             "last": channel["last"]} for channel in held]


def _causes(state: Mapping) -> list[dict]:
    """Return what a node waits for outside its NIC; a low rank may be the cause of a higher one."""
    node, channels = state["node"], {c["name"]: c for c in state["channels"]}

    def since(stream: str) -> str:
        last = channels[stream]["last"]
        return "ever" if last is None else f"since cycle {last:,}"

    def cause(rank: int, part: str, means: str, peer: int | None = None) -> dict:
        return {"rank": rank, "part": part, "node": node, "peer": peer, "means": means}

    causes = [cause(0, part, f"{means.format(node=node)} {since(edge)}, {edge} holds a beat")
              for edge, (part, means) in _EDGES.items()
              if channels[edge]["valid"] and not channels[edge]["ready"]]
    causes += [cause(-1, "peers", f"node {node} has given up node {peer}, which did not "
                                  "acknowledge a packet however often it was sent", peer)
               for peer in state["given_up"]]
    # Before what the GPU owes: its answers pass through the host.
    if state["unsent"]:
        causes.append(cause(0, "host", f"the host of node {node} does not send {state['unsent']} "
                                       f"packets to its NIC; host_rx brought nothing "
                                       f"{since('host_rx')}"))
    owed = state["owed"]
    if owed["gpu"]:
        causes.append(cause(1, "gpu", f"node {node} waits for {owed['gpu']} rows of its GPU, whose "
                                      f"vectors have not come; host_parser.vectors brought none "
                                      f"{since('host_parser.vectors')}"))
    if owed["host"]:
        causes.append(cause(1, "host", f"the host of node {node} owes {owed['host']} dense "
                                       f"vectors; host_parser.dense brought none "
                                       f"{since('host_parser.dense')}"))
    if "lookup_packager.stall_credit" in state["counting"]:
        peer = state["lookups_for"]
        causes.append(cause(2, "peers", f"lookups of node {node} wait for credit of node {peer}, "
                                        f"which has returned too little of it", peer))
    if owed["peers"]:
        causes.append(cause(3, "peers", f"node {node} waits for {owed['peers']} vectors of other "
                                        f"nodes; net_parser.vectors brought none "
                                        f"{since('net_parser.vectors')}"))
    if owed["written"]:
        causes.append(cause(1, "gpu", f"{owed['written']} rows and states that node {node} sent "
                                      f"its host, or asked it for, are not written or read; "
                                      f"host_parser.written brought nothing "
                                      f"{since('host_parser.written')}"))
    if state["gradients_waiting"]:
        causes.append(cause(4, "host", f"the host of node {node} holds back "
                                       f"{state['gradients_waiting']} packets of gradients for "
                                       f"lack of credit; the NIC sent none {since('host_tx')}"))
    if state["step_open"] and not state["unanswered"]:
        causes.append(cause(6, "peers", f"node {node} waits for the end of a step; "
                                        f"net_parser.steps brought none "
                                        f"{since('net_parser.steps')}"))
    if state["queries_waiting"]:
        causes.append(cause(4, "host", f"the host of node {node} holds back "
                                       f"{state['queries_waiting']} query packets for lack of "
                                       f"credit; the NIC sent none {since('host_tx')}"))
    if state["unanswered"]:
        causes.append(cause(5, "host", f"{state['unanswered']} samples of node {node} are not "
                                       f"answered; host_rx brought nothing {since('host_rx')}, "
                                       f"host_tx took nothing {since('host_tx')}"))
    return causes


def stuck_table(stuck: Mapping) -> Table:
    """Return a table of the streams under back-pressure, for the terminal."""
    shown = Table(title=f"Held up since cycle {stuck['since']:,}", title_justify="left")
    for column, justify in (("node", "right"), ("stream", "left"), ("waits for", "left"),
                            ("which waits for", "left"), ("last beat", "right")):
        shown.add_column(column, justify=justify)
    for node in stuck["nodes"]:
        for wait in node["waits"]:
            last = "never" if wait["last"] is None else f"{wait['last']:,}"
            shown.add_row(str(node["node"]), wait["stream"], wait["for"],
                          ", ".join(wait["behind"]) or "-", last)
        for part, count in node["owed"].items():
            if count:
                shown.add_row(str(node["node"]), "-", part, f"{count} answers", "-")
    return shown
