"""Float units behind streams, 16 lanes per beat, for a compiled engine."""

from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, LANES
from rtl.float import (
    CODE_CONVERTER_LATENCY,
    COUNT_DIVIDER_LATENCY,
    DOT_LATENCY,
    DOT_TREE_LATENCY,
    FLOAT_ADDER_LATENCY,
    FLOAT_DIVIDER_LATENCY,
    FLOAT_ROOT_LATENCY,
    PLAIN_MULTIPLIER_LATENCY,
    RECODER_LATENCY,
    CodeConverter,
    CountDivider,
    DotProduct,
    FloatAdder,
    FloatDivider,
    FloatRoot,
    PlainMultiplier,
    Recoder,
)
from rtl.shared import Shared
from rtl.stream import StreamFIFO

__all__ = ["FEW", "AdderTop", "FloatTop"]

FEW = 4
"""Lanes of the units of many stages, which compile slowly."""

ADD = data.StructLayout({"a": BEAT_BITS, "b": BEAT_BITS, "keep": 1})
MULTIPLY = data.StructLayout({"a": BEAT_BITS, "b": BEAT_BITS})
QUOTIENT = data.StructLayout({"a": 32 * FEW, "b": 32 * FEW})
DIVIDE = data.StructLayout({"x": BEAT_BITS, "n": 16})
CODE = data.StructLayout({"codes": 8 * LANES, "scale": 32, "bias": 32})
DOT = data.StructLayout({"a": BEAT_BITS, "b": BEAT_BITS, "previous": 32, "first": 1})


class _Handshake(wiring.Component):
    """Streams around a pipeline of fixed latency: ``result`` belongs to the input of that many
    cycles ago."""

    def __init__(self, shape, width: int, latency: int):
        self._latency = latency
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(width)),
            "result": In(width), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        depth = 2 * self._latency
        m.submodules.results = results = StreamFIFO(len(self.result), depth)
        wiring.connect(m, results.o, wiring.flipped(self.o))
        # One place of the FIFO is reserved for each result in flight.
        valid, level = Signal(self._latency), Signal(range(depth + 1))
        take = Signal()
        m.d.comb += [
            self.i.ready.eq(level != depth), take.eq(self.i.valid & self.i.ready),
            results.i.valid.eq(valid[-1]), results.i.payload.eq(self.result),
            self.idle.eq(~valid.any() & results.idle),
        ]
        m.d.sync += [
            valid.eq((valid << 1) | take),
            level.eq(level + take - (self.o.valid & self.o.ready)),
        ]
        return m


def _lane(beat: Value, lane: int) -> Value:
    return Value.cast(beat)[32 * lane:32 * lane + 32]


def _attach(m: Module, top: wiring.Component, name: str, shape, width: int, latency: int):
    """Put the streams ``<name>`` and ``<name>_o`` of ``top`` around a pipeline; return both."""
    pipe = _Handshake(shape, width, latency)
    m.submodules[name] = pipe
    wiring.connect(m, wiring.flipped(getattr(top, name)), pipe.i)
    wiring.connect(m, pipe.o, wiring.flipped(getattr(top, f"{name}_o")))
    return getattr(top, name).payload, pipe


def _add(m: Module, top: wiring.Component) -> _Handshake:
    payload, pipe = _attach(m, top, "add", ADD, BEAT_BITS, FLOAT_ADDER_LATENCY)
    for lane in range(LANES):
        m.submodules[f"adder{lane}"] = unit = Shared(FloatAdder(), "float_adder")
        m.d.comb += [
            unit.a.eq(_lane(payload.a, lane)), unit.b.eq(_lane(payload.b, lane)),
            unit.keep.eq(payload.keep), _lane(pipe.result, lane).eq(unit.o),
        ]
    return pipe


def _multiply(m: Module, top: wiring.Component) -> _Handshake:
    payload, pipe = _attach(m, top, "multiply", MULTIPLY, BEAT_BITS, PLAIN_MULTIPLIER_LATENCY)
    for lane in range(LANES):
        unit = Shared(PlainMultiplier(), "plain_multiplier")
        m.submodules[f"multiplier{lane}"] = unit
        m.d.comb += [
            unit.a.eq(_lane(payload.a, lane)), unit.b.eq(_lane(payload.b, lane)),
            _lane(pipe.result, lane).eq(unit.o),
        ]
    return pipe


def _divide(m: Module, top: wiring.Component) -> _Handshake:
    payload, pipe = _attach(m, top, "divide", DIVIDE, BEAT_BITS, COUNT_DIVIDER_LATENCY)
    m.submodules.divider = unit = CountDivider()
    m.d.comb += [unit.x.eq(payload.x), unit.n.eq(payload.n), pipe.result.eq(unit.o)]
    return pipe


def _dot(m: Module, top: wiring.Component) -> _Handshake:
    payload, pipe = _attach(m, top, "dot", DOT, 32, RECODER_LATENCY + DOT_LATENCY)
    m.submodules.dot_product = unit = Shared(DotProduct(), "dot_product")
    for name in ("a", "b"):
        for lane in range(LANES):
            m.submodules[f"recoder_{name}{lane}"] = recoder = Shared(Recoder(), "recoder")
            m.d.comb += [
                recoder.i.eq(_lane(getattr(payload, name), lane)),
                getattr(unit, name)[lane].eq(recoder.o),
            ]
    # The operand that is added to the tree's sum waits for it.
    late = [payload.previous, payload.first]
    for stage in range(RECODER_LATENCY + DOT_TREE_LATENCY):
        following = [Signal(Shape.cast(value.shape()), name=f"late{stage}_{k}")
                     for k, value in enumerate(late)]
        m.d.sync += [register.eq(value) for register, value in zip(following, late)]
        late = following
    m.d.comb += [unit.previous.eq(late[0]), unit.first.eq(late[1]), pipe.result.eq(unit.o)]
    return pipe


def _quotient(m: Module, top: wiring.Component) -> _Handshake:
    payload, pipe = _attach(m, top, "quotient", QUOTIENT, 32 * FEW, FLOAT_DIVIDER_LATENCY)
    for lane in range(FEW):
        m.submodules[f"quotient{lane}"] = unit = Shared(FloatDivider(), "float_divider")
        m.d.comb += [
            unit.a.eq(_lane(payload.a, lane)), unit.b.eq(_lane(payload.b, lane)),
            _lane(pipe.result, lane).eq(unit.o),
        ]
    return pipe


def _root(m: Module, top: wiring.Component) -> _Handshake:
    payload, pipe = _attach(m, top, "root", 32 * FEW, 32 * FEW, FLOAT_ROOT_LATENCY)
    for lane in range(FEW):
        m.submodules[f"root{lane}"] = unit = Shared(FloatRoot(), "float_root")
        m.d.comb += [unit.i.eq(_lane(payload, lane)), _lane(pipe.result, lane).eq(unit.o)]
    return pipe


def _code(m: Module, top: wiring.Component) -> _Handshake:
    payload, pipe = _attach(m, top, "code", CODE, BEAT_BITS, CODE_CONVERTER_LATENCY)
    m.submodules.code_converter = unit = CodeConverter()
    m.d.comb += [unit.codes.eq(payload.codes), unit.scale.eq(payload.scale),
                 unit.bias.eq(payload.bias), pipe.result.eq(unit.o)]
    return pipe


class AdderTop(wiring.Component):
    """``add_o`` = ``add.a`` + ``add.b``, lane by lane; with ``add.keep``, ``add.a`` bit for bit."""

    add: In(stream.Signature(ADD))
    add_o: Out(stream.Signature(BEAT_BITS))
    idle: Out(1)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += self.idle.eq(_add(m, self).idle)
        return m


class FloatTop(wiring.Component):
    """Every unit behind its own streams, independent of each other.

    ``add``: as :class:`AdderTop`. ``multiply``, ``quotient``, ``root``: lane by lane. ``divide``:
    lanes of ``x`` by ``n``. ``dot``: the dot product of ``a`` and ``b``, added to ``previous``
    unless ``first`` is 1. ``code``: ``codes * scale + bias``.
    """

    add: In(stream.Signature(ADD))
    add_o: Out(stream.Signature(BEAT_BITS))
    multiply: In(stream.Signature(MULTIPLY))
    multiply_o: Out(stream.Signature(BEAT_BITS))
    divide: In(stream.Signature(DIVIDE))
    divide_o: Out(stream.Signature(BEAT_BITS))
    dot: In(stream.Signature(DOT))
    dot_o: Out(stream.Signature(32))
    quotient: In(stream.Signature(QUOTIENT))
    quotient_o: Out(stream.Signature(32 * FEW))
    root: In(stream.Signature(32 * FEW))
    root_o: Out(stream.Signature(32 * FEW))
    code: In(stream.Signature(CODE))
    code_o: Out(stream.Signature(BEAT_BITS))
    idle: Out(1)

    def elaborate(self, platform) -> Module:
        m = Module()
        attach_all = (_add, _multiply, _divide, _dot, _quotient, _root, _code)
        pipes = [attach(m, self) for attach in attach_all]
        idle = pipes[0].idle
        for pipe in pipes[1:]:
            idle = idle & pipe.idle
        m.d.comb += self.idle.eq(idle)
        return m
