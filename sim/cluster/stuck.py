"""Diagnosis of a stuck cluster: the state of every stream, and the chain of waits."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from rtl.formats import Opcode
from rtl.monitor.channels import channel_map
from sim.cluster.causes import causes_of, explanation, step_waits
from sim.cluster.cluster import Cluster
from sim.cluster.frame_faults import lost_between, lost_frames, remedy
from sim.cluster.watchdog import StuckError
from sim.nic.registers import RegisterFile
from sim.node.protocol import ClusterNode

__all__ = ["diagnose", "explain_given_up", "stuck_table"]

_HELD_PARTS = {"host": "host_tx", "network": "net_tx"}
"""Part that takes no beats while a stream of the NIC is held, by part."""

_OWED = {"gpu": "gpu_answers", "host": "dense_answers", "peers": "peer_answers"}
"""Blocks that count the answers of a part."""

_BAGS_OWED = {"gpu_bags": "gpu_bag_answers", "peer_bags": "bag_answers"}
"""The same for vectors of bags, in NICs with owner pooling."""


def diagnose(cluster: Cluster, registers: Sequence, error: StuckError, linked: bool,
             renewed: bool = False) -> dict:
    """Return the state of every NIC of a stuck cluster, and the likely causes.

    Parameters
    ----------
    registers: registers of each node. The registers and streams of a modelled NIC cannot be read:
        then only its host, its GPU and the network are examined, and ``channels`` is empty.
    linked: whether the NICs have a reliable link, which repeats lost frames.
    renewed: whether a node was restarted, and has a ``link_epoch`` of its own.

    Fields of the result
    --------------------
    message: one line.
    since: cycle of the last movement.
    causes: causes of waits outside a NIC, the likeliest root cause first. Each has ``part``, the
        waiting ``node``, ``peer`` (for which it waits, or None) and ``means``.
    nodes: state of each node:
        channels: every stream with ``name``, ``to``, ``valid``, ``ready``, ``beats`` and ``last``,
            the cycle of the last beat or None.
        waits: the streams under back-pressure, with ``behind``, the blocked output streams of the
            block that should take the beat.
        owed: outstanding answers of ``gpu``, ``host`` (dense vectors) and ``peers``, and rows and
            optimizer states of training not yet ``written``; with owner pooling, also vectors of
            bags: ``gpu_bags`` and ``peer_bags``.
        owing: peers for which frames with such answers were lost, in either direction.
        silent: parts that a fault keeps silent.
        given_up: peers that do not acknowledge.
        link_epoch: epoch of the node.
        bad_acknowledgements: acknowledgements of packets that the node has not sent.
        counting: stall counters that are still rising.
        unanswered: number of unanswered samples.
        unsent: packets that the host does not send to its NIC, including answers for its GPU.
        queries_waiting, gradients_waiting: packets that the host holds back for lack of credit.
        step_open: whether a step of training is open.
        step_waits: whether the step waits for ``sums`` or ``rows``, and the nodes that have not
            sent them.
    """
    nodes = [_of_host(cluster, node, linked) for node in cluster.nodes]
    counters: list[Mapping[str, int]] = []
    for state, node, file in zip(nodes, cluster.nodes, registers):
        if isinstance(file, RegisterFile):
            # Streams first: reading a register lets the NIC run on.
            state |= _streams(node, file)
            count = file.counters()
            counters.append(count)
            state |= _registers(file, count, renewed)
            blocks = _OWED | (_BAGS_OWED if "bag_answers.asked" in count else {})
            state["owed"] |= {
                part: count[f"{block}.asked"] - count[f"{block}.answered"] & 0xFFFFFFFF
                for part, block in blocks.items()}
    if counters and "step_barrier.steps" in counters[0]:
        unwritten = [state["node"] for state in nodes if state["owed"]["written"]]
        for state in nodes:
            lost = [] if linked else [node.number for node in cluster.nodes if lost_between(
                cluster.exchange.injected, node.number, state["node"], Opcode.STEPS,
                Opcode.PARTIALS)]
            state["step_waits"] = step_waits(state["node"], counters, unwritten, lost)
    if len(nodes) == 2:  # of two nodes, each can only wait for the other
        for state, other in zip(nodes, (1, 0)):
            state["owing"] = [other]
    causes = causes_of(nodes)
    means = explanation(causes) or "no NIC is waiting: a packet was lost"
    injected, full = cluster.exchange.injected, cluster.exchange.full_frames
    said = (f"{error}: {means}", lost_frames(injected, full),
            remedy(sum(injected.values()), full, linked, not counters))
    return {"message": "; ".join(filter(None, said)), "since": error.since,
            "causes": [{name: cause[name] for name in ("part", "node", "peer", "means")}
                       for cause in causes],
            "nodes": nodes}


def explain_given_up(cluster: Cluster, registers: Sequence, counters: Sequence[Mapping[str, int]],
                     renewed: bool = False) -> str | None:
    """Return in one line which nodes were given up and why, or None if all nodes are reachable.

    ``registers``, ``renewed``: as in :func:`diagnose`. ``counters``: of each node.
    """
    states = [_of_host(cluster, node, True) | _link(file, count, renewed)
              for node, file, count in zip(cluster.nodes, registers, counters)
              if isinstance(file, RegisterFile)]
    given_up = any(state["given_up"] for state in states)
    return explanation(causes_of(states)) if given_up else None


def _of_host(cluster: Cluster, node: ClusterNode, linked: bool) -> dict:
    """Return the state of a node without its NIC."""
    number, injected = node.number, cluster.exchange.injected
    training = getattr(node, "training", None)
    silent = [part for part, windows in (("host", node.silent_host), ("gpu", node.silent_gpu))
              if windows.after(cluster.cycle) > cluster.cycle]
    silent += [part for part, stream in _HELD_PARTS.items() if part not in silent
               and cluster.held.get((number, stream), 0) > cluster.cycle]
    owing = [] if linked else [
        peer.number for peer in cluster.nodes
        if lost_between(injected, number, peer.number, Opcode.LOOKUPS, Opcode.BAGS)
        or lost_between(injected, peer.number, number, Opcode.VECTORS, Opcode.BAG_VECTORS)]
    return {"node": number, "channels": [], "waits": [], "silent": silent,
            "owed": {"gpu": 0, "host": 0, "peers": 0,
                     "written": 0 if training is None else training.memory.unfinished},
            "owing": owing, "counting": [], "given_up": [], "link_epoch": None,
            "bad_acknowledgements": 0, "lookups_for": None,
            "unanswered": node.unanswered, "unsent": node.packets_unsent,
            "queries_waiting": node.queries_waiting,
            "gradients_waiting": 0 if training is None else training.waiting,
            "step_open": training is not None and training.finished is None,
            "step_waits": ("sums", [])}


def _streams(node: ClusterNode, registers: RegisterFile) -> dict:
    """Return the state of the streams of a NIC."""
    state = node.engine.channels()
    takers = channel_map(*(name in registers.names
                           for name in (
                               "training", "link_epoch", "bag_window", "repeats_enable")))
    channels = [
        {"name": name, "to": takers[name], "valid": bool(valid), "ready": bool(ready),
         "beats": int(beats), "last": int(last) if last >= 0 else None}
        for name, valid, ready, beats, last in zip(takers, *state)]
    return {"channels": channels, "waits": _waits(channels)}


def _registers(registers: RegisterFile, before: Mapping[str, int], renewed: bool) -> dict:
    """Return the state shown by the registers of a NIC; ``before``: its counters, read just
    before."""
    after = registers.counters()
    return _link(registers, after, renewed) | {
        "counting": [name for name, count in after.items()
                     if name.partition(".")[2].startswith("stall_") and count != before[name]],
        "lookups_for": registers.read("lookup_next_node")["lookup_next_node"]}


def _link(registers: RegisterFile, counters: Mapping[str, int], renewed: bool) -> dict:
    """Return the state of a NIC's reliable link; epochs of ``renewed`` nodes may differ."""
    epoch = ["link_epoch"] if "link_epoch" in registers.names and not renewed else []
    return {"given_up": _given_up(registers),
            "link_epoch": registers.read(*epoch)["link_epoch"] if epoch else None,
            "bad_acknowledgements": counters.get("link_sender.bad_acknowledgements", 0)}


def _given_up(registers: RegisterFile) -> list[int]:
    """Return the nodes that a NIC with a reliable link has given up."""
    names = [name for name in registers.names if name.startswith("link_given_up")]
    values = registers.read(*names) if names else {}
    return [32 * word + bit for word, name in enumerate(names) for bit in range(32)
            if values[name] >> bit & 1]


def _waits(channels: Sequence[Mapping]) -> list[dict]:
    """Return the streams under back-pressure, and the streams that block their next block."""
    held = [channel for channel in channels if channel["valid"] and not channel["ready"]]
    return [{"stream": channel["name"], "for": channel["to"],
             "behind": [other["name"] for other in held
                        if other["name"].partition(".")[0] == channel["to"]],
             "last": channel["last"]} for channel in held]


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
