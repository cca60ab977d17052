"""Base of the record and partial packagers: from items to packets with credit."""

from amaranth.hdl import C, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import CREDIT_BITS, NODE_BITS, FrameInfo, Opcode, RawBeat
from rtl.monitor.counters import CounterLayout, count
from rtl.network.credits import CreditGate
from rtl.network.layouts import Credit
from rtl.network.output_queues import OutputQueues
from rtl.network.packet_pool import PacketPool, packet_buffers
from rtl.network.packet_reader import PacketReader, Ready
from rtl.network.single_pool import SinglePool
from rtl.stream import SkidBuffer

__all__ = ["PACKAGER_EVENTS", "Packager", "latency_of"]

PACKAGER_EVENTS = (
    "packets", "stall_credit", "stall_buffers", "full", "timeouts", "step_changes")


def latency_of(item: str) -> dict[tuple[str, str], int]:
    """Return the cycles from the last ``item`` of a packet to the parts of the packet."""
    fills = f"{item} that fills a packet"
    return {(fills, "header"): 5, (fills, "first beat"): 7,
            (f"{fills}, with credits", "header"): 7, (f"{fills}, with credits", "first beat"): 9}


class Packager(wiring.Component):
    """Base of packagers: one item per unit, one destination and one step per packet.

    A subclass defines how many units a packet holds (:meth:`_limit`) and how many beats they need
    (:meth:`_beats`). It stores the items and forms the beats (:meth:`_store`).

    Parameters
    ----------
    item: layout of an item, with members ``destination`` and ``step``.
    units: most units of a packet.
    destinations, max_beats, opcode, credited, buffers: see :class:`RecordPackager`.
    places: records of a destination that may be inside, if each destination has its own queue
        (:class:`OutputQueues`); requires records and credits.
    items: name of the counter of items.
    events: names of the other counters; ``beats`` adds the payload beats sent.
    bits: width of the part of a beat that may be nonzero.
    least: fewest beats of a packet.
    ports: additional ports of the subclass.
    """

    def __init__(self, item: data.StructLayout, units: int, destinations: int, max_beats: int,
                 opcode: int, credited: bool, buffers: int | None, *, items: str,
                 events: tuple[str, ...] = PACKAGER_EVENTS, bits: int = BEAT_BITS, least: int = 1,
                 places: int | None = None, **ports):
        self._opcode, self._items, self._bits, self._least = Opcode(opcode), items, bits, least
        self._destinations, self._max_beats = destinations, max_beats
        self._item, self._units, self._credited = item, units, credited
        self._places = places
        self._buffers = packet_buffers(destinations) if buffers is None else buffers
        self._pool = self._make_pool()
        super().__init__({
            "i": In(stream.Signature(item)),
            "headers": Out(stream.Signature(FrameInfo)),
            "payload": Out(stream.Signature(RawBeat)),
            "time": In(32), "timeout": In(16),
            "credit_node": Out(NODE_BITS), "credit": In(CREDIT_BITS), "next_node": Out(NODE_BITS),
            "counters": Out(CounterLayout(items, *events)), "idle": Out(1), **ports,
        } | ({"window": In(CREDIT_BITS), "credit_in": In(Credit), "lost": In(destinations)}
             if credited else {})
            | ({"queued": In(1)} if places else {}))

    @staticmethod
    def _check(destinations: int, max_beats: int, least: int) -> None:
        """Raise ``TypeError`` or ``ValueError`` for a size that is out of range."""
        for name, value, low, high in (("destinations", destinations, 1, 1 << NODE_BITS),
                                       ("max_beats", max_beats, least, 140)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be between {low} and {high}, not {value!r}")

    def _make_pool(self) -> PacketPool:
        """Return the pool of the packet buffers."""
        if self._units == 1:
            return SinglePool(self._destinations, self._buffers)
        return PacketPool(self._destinations, self._buffers, self._units, match_step=True)

    def _offer(self, pool: PacketPool, offered: data.View) -> list:
        """Return the statements that drive the subclass's inputs of ``pool`` from the item."""
        return [pool.last.eq(1)]

    def _units_of(self, place: data.View) -> Value:
        """Return the number of units of a closed packet."""
        return Value.cast(place.units)

    def _closings(self, pool: PacketPool) -> dict[str, Value]:
        """Return the events that a packet closes, by counter."""
        return {"full": pool.full, "timeouts": pool.expired, "step_changes": pool.stepped}

    def _room(self, window: Value) -> Value:
        """Return the beats of a window that are always acknowledged without further packets."""
        return window

    def _limit(self, m: Module, beats: Value, limit: Signal) -> None:
        """Drive ``limit``, the units that close a packet of at most ``beats``."""
        raise NotImplementedError

    def _beats(self, units: Value) -> Value:
        """Return the number of beats of ``units`` units."""
        raise NotImplementedError

    def _store(self, m: Module, pool: PacketPool, item: data.View, reader: PacketReader) -> None:
        """Store ``item`` at the position that ``pool`` outputs; form ``reader.data`` from the beat
        read."""
        raise NotImplementedError

    def elaborate(self, platform) -> Module:
        m = Module()
        most = self._max_beats
        m.submodules.input = source = SkidBuffer(self._item)
        m.submodules.pool = pool = self._pool
        ready = Ready(self._buffers, self._units, most)
        m.submodules.reader = reader = PacketReader(
            self._opcode, self._buffers, self._units, most, bits=self._bits,
            least=self._least)
        queues = None
        if self._places:
            m.submodules.queues = queues = OutputQueues(
                self._destinations, self._places)
            wiring.connect(m, wiring.flipped(self.i), queues.i)
        wiring.connect(m, queues.o if queues else wiring.flipped(self.i), source.i)
        wiring.connect(m, reader.headers, wiring.flipped(self.headers))
        wiring.connect(m, reader.payload, wiring.flipped(self.payload))

        offered, beats = source.o.payload, Signal(range(most + 1))
        item = Signal(self._item, reset_less=True)  # the item inside the pool
        # A beat of values has its own enable: a common enable would have 640 loads.
        for name, field in self._item:
            values = Shape.cast(field.shape).width >= BEAT_BITS
            with m.If(pool.vacant if values else pool.take):
                m.d.sync += item[name].eq(offered[name])
        m.d.comb += beats.eq(most)
        if self._credited:
            # A packet with more beats than the window could never leave.
            room = self._room(self.window)
            m.d.comb += beats.eq(Mux(room < most, room, most))
        self._limit(m, beats, pool.limit)
        m.d.comb += [
            pool.valid.eq(source.o.valid), source.o.ready.eq(pool.take),
            pool.destination.eq(offered.destination), pool.step.eq(offered.step),
            *self._offer(pool, offered),
            pool.time.eq(self.time), pool.timeout.eq(self.timeout),
            pool.freed.eq(reader.freed),
            self.credit_node.eq(reader.credit_node), reader.credit.eq(self.credit),
        ]
        self._store(m, pool, item, reader)

        closed = Signal(ready)
        place = pool.closed.payload
        m.d.comb += [*(closed[name].eq(place[name]) for name in ("destination", "step", "buffer")),
                     closed.units.eq(self._units_of(place))]
        m.d.comb += closed.beats.eq(self._beats(closed.units))
        stalled, gate_idle = Signal(), Signal(init=1)
        queues_idle = C(1)
        if self._credited:
            m.submodules.gate = gate = CreditGate(ready, self._destinations)
            wiring.connect(m, gate.o, reader.i)
            m.d.comb += [gate.window.eq(self.window), gate.credit_in.eq(self.credit_in),
                         gate.lost.eq(self.lost),
                         stalled.eq(gate.stalled), gate_idle.eq(gate.idle)]
        else:
            m.d.comb += gate_idle.eq(1)
        if queues:
            queues_idle = queues.idle
            m.d.sync += queues.joined.node.eq(item.destination)  # destination of the record written
            stalled |= queues.short
            m.d.comb += [
                queues.on.eq(self.queued), queues.window.eq(self.window), queues.lost.eq(self.lost),
                queues.acknowledged.eq(gate.acknowledged),
            ]
        gate_in = gate.i if self._credited else reader.i
        short = queues.short_node if queues else 0
        m.d.sync += self.next_node.eq(Mux(gate_in.valid, closed.destination, short))
        m.d.comb += [gate_in.valid.eq(pool.closed.valid), gate_in.payload.eq(closed),
                     pool.closed.ready.eq(gate_in.ready),
                     self.idle.eq(queues_idle & source.idle & pool.idle & gate_idle & reader.idle)]
        count(m, self.counters, packets=reader.i.valid & reader.i.ready,
              stall_credit=stalled, stall_buffers=pool.starved, **self._closings(pool),
              **{self._items: pool.ready})
        if "beats" in self.counters.shape().members:
            count(m, self.counters, beats=self.payload.valid & self.payload.ready)
        return m
