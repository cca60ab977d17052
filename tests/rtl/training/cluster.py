"""Training paths of several nodes back to back, with hosts in numpy, on Amaranth's simulator."""

import random
from collections import deque
from itertools import accumulate, pairwise

import numpy as np
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from host.dlrm.embedding import EmbeddingTables
from host.dlrm.optimizer import OPTIMIZERS, Optimizer
from host.model import Model
from host.samples import Samples
from host.wire.packets import header_beat
from rtl.config import NicConfig, beats_of, packing_of
from rtl.formats import DescriptorKind, Opcode
from rtl.training import TrainingPath
from tests.rtl.descriptors import Table, split
from tests.rtl.power_up import powered_up
from tests.rtl.training.host import Cache, Host, received
from tests.support import counts_of, simulate

WIRE, PCIE = 6, 8
"""Cycles of a packet between nodes, and between a NIC and its host."""

_INPUTS = "gradients", "returned", "states", "written", "partials", "steps", "updated"
_OUTPUTS = ("net_headers", "net_payload", "host_headers", "host_payload", "lookups", "write",
            "refused")


class _Paths(wiring.Component):
    def __init__(self, paths: list[TrainingPath]):
        self._paths = paths
        super().__init__({f"path{n}": Out(path.signature) for n, path in enumerate(paths)})

    def elaborate(self, platform) -> Module:
        m = Module()
        for n, path in enumerate(self._paths):
            m.submodules[f"path{n}"] = path
            wiring.connect(m, wiring.flipped(getattr(self, f"path{n}")), path)
        return m


class _Node:
    """Surroundings of one path: packets on their way in, and output packets."""

    def __init__(self, number: int, port, host: Host, seed: int):
        self.number, self.port, self.host, self.cache = number, port, host, Cache(host, seed)
        self.due: dict[str, deque] = {name: deque() for name in _INPUTS}
        self.valid = dict.fromkeys(_INPUTS, False)
        self.credits: deque = deque()
        self.open = {"net": [], "host": []}
        self.headers = {"net": deque(), "host": deque()}
        self.acknowledge = self.sent_beats = 0
        self.refused: list[tuple[int, int]] = []
        self.writes: list[tuple[int, int, int]] = []

    def arrive(self, now: int, packet: np.ndarray) -> None:
        name, beats = received(packet)
        self.due[name] += [(now, beat) for beat in beats]

    def host_turn(self, now: int, credits: int) -> None:
        """Send the host's packets for its NIC; gradients and returned spills as credit allows."""
        host = self.host
        while host.send:
            self.arrive(now + PCIE, host.send.popleft())
        while host.waiting:
            owed = self.sent_beats - self.acknowledge & 0xFFFF
            if owed + len(host.waiting[0]) - 1 > credits:
                break
            packet = host.waiting.popleft()
            self.sent_beats += len(packet) - 1
            self.arrive(now + PCIE, packet)


def _rest(port):
    """Return a testbench: while ``port.idle`` is 1, no output is valid, and it stays 1 until an
    input changes."""
    async def bench(ctx):
        resting = False
        comes = Cat(*(getattr(port, name).valid for name in _INPUTS), port.credit_in.valid,
                    port.write_en)
        leaves = Cat(getattr(port, name).valid for name in _OUTPUTS)
        async for _, _, idle, came, left in ctx.tick().sample(port.idle, comes, leaves):
            assert not (idle or resting) or not left, "something leaves while idle"
            assert idle or not resting, "moves by itself"
            resting = bool(idle) and not came
    return bench


class Cluster:
    """``nodes`` paths that train ``model`` like :class:`host.dlrm.embedding.EmbeddingTables`.

    ``run`` trains on mini-batches and the gradients of their bags. Each step has its own optimizer
    and kind of partials, ``single`` for no local reduction, because building a simulation costs
    more than running it. ``first``: number of the first step.
    """

    def __init__(self, config: NicConfig, model: Model, *, nodes: int, seed: int = 1,
                 first: int = 0):
        self.config, self.model, self.nodes = config, model, nodes
        self.paths = [TrainingPath(config) for _ in range(nodes)]
        self.dut = _Paths(self.paths)
        self.tables = {
            table: Table(kind=DescriptorKind.ROW if table % 2 else DescriptorKind.TABLE,
                         owner=0 if table % 2 else table // 2 % nodes, owners=nodes, rows=rows)
            for table, rows in enumerate(model.rows)}
        self.hosts = [Host(node, model, seed, dimension=model.dimension,
                           payload_beats=config.host_payload_beats) for node in range(nodes)]
        self.around = [_Node(node, getattr(self.dut, f"path{node}"), host, seed + node)
                       for node, host in enumerate(self.hosts)]
        self.reference = EmbeddingTables(model, seed, nodes=nodes)
        self.rng, self.cycles, self.first = random.Random(seed), 0, first
        self.counters: list[dict] = []
        self.beats_between, self.compare = 0, True
        self.registers: dict[str, int] = {}

    def run(self, batches: list[tuple[Samples, np.ndarray]], modes: list[tuple[Optimizer, str]],
            *, limit: int = 20_000) -> None:
        async def bench(ctx):
            await self._set_up(ctx)
            for number, ((samples, gradients), mode) in enumerate(
                    zip(batches, modes, strict=True), self.first):
                step = number & 0xFFFF
                self._choose(ctx, *mode)
                self._begin(samples, gradients, step)
                while any(host.done[-1:] != [step] for host in self.hosts):
                    await self._cycle(ctx)
                self.reference.update(samples, gradients)
                if self.compare:
                    self._check_rows(samples)
            for _ in range(2_000):
                if self._quiet(ctx):
                    break
                await self._cycle(ctx)
            assert self._quiet(ctx), [ctx.get(node.port.idle) for node in self.around]
            self.counters = [{
                part: counts_of(ctx, node.port.counters[part])
                for part, layout in node.port.counters.shape().members.items()}
                for node in self.around]

        simulate(powered_up(self.dut), bench, limit=limit,
                 background=[_rest(node.port) for node in self.around])

    def _quiet(self, ctx) -> bool:
        return all(ctx.get(node.port.idle) and not any(node.due.values()) and not node.host.send
                   and not node.cache.answers for node in self.around)

    def _check_rows(self, samples: Samples) -> None:
        """Compare the rows of a mini-batch, at their owners, with the reference's, bit for bit."""
        for key in np.unique(samples.keys).tolist():
            owner, _ = split(self.tables, key >> 36, key & (1 << 36) - 1, 0)
            vector, state = self.hosts[owner].rows.read(np.array([key]))
            wanted, wanted_state = self.reference.rows.read(np.array([key]))
            assert vector.tobytes() == wanted.tobytes(), (hex(key), vector, wanted)
            assert state.tobytes() == wanted_state.tobytes(), hex(key)

    def _begin(self, samples: Samples, gradients: np.ndarray, step: int) -> None:
        n = len(samples)
        sizes = (n // self.nodes + (node < n % self.nodes) for node in range(self.nodes))
        for node, (first, last) in enumerate(pairwise(accumulate(sizes, initial=0))):
            keys = slice(samples.key_offsets[first], samples.key_offsets[last])
            self.hosts[node].begin(
                samples.tables[keys], samples.rows[keys],
                samples.bag_lengths[first:last].reshape(-1),
                gradients[first:last].reshape(-1, self.model.dimension), step)

    async def _set_up(self, ctx) -> None:
        dimension = self.model.dimension
        registers = {
            "nodes": self.nodes, "vector_beats": beats_of(dimension),
            "vector_packing": packing_of(dimension), "pooling_mean": self.model.pooling == "mean",
            "gradient_window": self.config.gradient_window,
            "gradient_share": self.config.partial_beats // self.config.nodes,
            "gradient_timeout": 8, "request_batch": 8, "request_timeout": 6, **self.registers}
        for node in self.around:
            ctx.set(node.port.node, node.number)
            for name in _OUTPUTS:
                ctx.set(getattr(node.port, name).ready, 1)
        self._write(ctx, registers)
        while not all(ctx.get(node.port.write_ready) for node in self.around):
            await ctx.tick()
        for number, entry in self.tables.items():
            for word, value in reversed(list(enumerate(entry.words()))):
                for node in self.around:
                    ctx.set(node.port.write_en, 1)
                    ctx.set(node.port.write_table, number)
                    ctx.set(node.port.write_word, word)
                    ctx.set(node.port.write_data, value)
                await ctx.tick()
        for node in self.around:
            ctx.set(node.port.write_en, 0)
        while not all(ctx.get(node.port.idle) for node in self.around):
            await ctx.tick()
        for path in self.paths:
            # The step number is only reachable through all earlier steps.
            for block in ("step_barrier", "step_counter"):
                ctx.set(path._blocks[block].open_step, self.first)

    def _write(self, ctx, registers: dict[str, int]) -> None:
        for node in self.around:
            for name, value in registers.items():
                ctx.set(getattr(node.port, name), value)

    def _choose(self, ctx, optimizer: Optimizer, partials: str) -> None:
        """Select the mode of the next step, in the NICs and in the reference."""
        self._write(ctx, {
            "local_reduction": partials != "single",
            # Without addition there is no rounding.
            "gradient_partials": partials != "exact",
            "optimizer": OPTIMIZERS.index(optimizer.name),
            "learning_rate": int(np.float32(optimizer.learning_rate).view(np.uint32)),
            "epsilon": int(np.float32(optimizer.epsilon).view(np.uint32))})
        self.reference.optimizer = optimizer
        self.reference.partials = "exact" if partials == "single" else partials

    async def _cycle(self, ctx) -> None:
        now = self.cycles = self.cycles + 1
        for node in self.around:
            self._drive(ctx, node, now)
        for node in self.around:
            self._look(ctx, node, now)
        await ctx.tick()

    def _drive(self, ctx, node: _Node, now: int) -> None:
        ctx.set(node.port.time, now)
        node.host_turn(now, self.config.gradient_credits)
        node.due["updated"] += [(now, beat) for beat in node.cache.due(now)]
        for name, queue in node.due.items():
            port = getattr(node.port, name)
            valid = bool(queue) and queue[0][0] <= now
            if valid:
                ctx.set(port.payload, queue[0][1])
            if valid != node.valid[name]:
                ctx.set(port.valid, valid)
                node.valid[name] = valid
        credit = {"valid": 0, "node": 0, "value": 0}
        if node.credits and node.credits[0][0] <= now:
            credit = {"valid": 1, **node.credits.popleft()[1]}
        ctx.set(node.port.credit_in, credit)

    def _look(self, ctx, node: _Node, now: int) -> None:
        """Sample the transfers of this cycle, before the clock rises."""
        port = node.port
        for name, queue in node.due.items():
            if node.valid[name] and ctx.get(getattr(port, name).ready):
                queue.popleft()
        out = {name: ctx.get(getattr(port, name).payload) for name in _OUTPUTS
               if ctx.get(getattr(port, name).valid)}
        node.acknowledge = ctx.get(port.acknowledge)
        for side in ("net", "host"):
            if (header := out.get(f"{side}_headers")) is not None:
                node.headers[side].append({name: header[name] for name in (
                    "opcode", "destination", "step", "count", "credit", "empty")})
            if (beat := out.get(f"{side}_payload")) is not None:
                node.open[side].append(beat.data)
                if beat.last:
                    self._left(node, side, now)
        if (lookup := out.get("lookups")) is not None:
            node.cache.look_up(now, lookup.key.row, lookup.key.table, lookup.meta)
        if (write := out.get("write")) is not None:
            node.writes.append((write.slot, write.beat, write.data))
        if (refused := out.get("refused")) is not None:
            node.refused.append((refused.status, refused.step))

    def _left(self, node: _Node, side: str, now: int) -> None:
        """Deliver a complete packet: to the host, or to its node."""
        header, beats = node.headers[side].popleft(), node.open[side]
        node.open[side] = []
        words = np.array([np.frombuffer(beat.to_bytes(64, "little"), "<u4") for beat in beats])
        packet = np.concatenate((header_beat(
            Opcode(header["opcode"]), node=header["destination"], step=header["step"],
            count=header["count"], source=node.number, credit=header["credit"]), words))
        if side == "host":
            node.host.handle(packet)
            return
        other = self.around[header["destination"]]
        assert other is not node
        self.beats_between += len(beats)
        other.arrive(now + WIRE, packet)
        other.credits.append((now + WIRE, {"node": node.number, "value": header["credit"]}))
