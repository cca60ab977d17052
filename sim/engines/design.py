"""The ports of a component as engines see them: streams, plain signals and the register port."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from amaranth.hdl import Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

__all__ = ["AXI_MEMBERS", "Design", "SignalPort", "StreamPort", "describe"]

AXI_MEMBERS = (
    "awaddr", "awvalid", "awready", "wdata", "wstrb", "wvalid", "wready", "bresp", "bvalid",
    "bready", "araddr", "arvalid", "arready", "rdata", "rresp", "rvalid", "rready")
"""Members of the AXI4-Lite port ``csr``, in the order that the harness uses."""


@dataclass(frozen=True)
class StreamPort:
    """A stream port. Its payload has ``width`` bits and is passed as ``words`` little-endian
    uint32."""

    name: str
    is_input: bool
    width: int
    payload: Value
    valid: Value
    ready: Value

    @property
    def words(self) -> int:
        """32-bit words of a payload."""
        return max(1, -(-self.width // 32))


@dataclass(frozen=True)
class SignalPort:
    """A port that is neither a stream nor a register access."""

    name: str
    is_input: bool
    width: int
    init: int
    value: Value


@dataclass
class Design:
    """The ports of a component, by flat name (``a.b`` of a signature is ``a__b``).

    ``registers`` holds the members of the port ``csr``; it is empty if there is none.
    """

    streams: dict[str, StreamPort] = field(default_factory=dict)
    signals: dict[str, SignalPort] = field(default_factory=dict)
    registers: dict[str, Value] = field(default_factory=dict)

    @property
    def inputs(self) -> list[StreamPort]:
        """Input streams, in order."""
        return [port for port in self.streams.values() if port.is_input]

    @property
    def outputs(self) -> list[StreamPort]:
        """Output streams, in order."""
        return [port for port in self.streams.values() if not port.is_input]


def describe(component: wiring.Component) -> Design:
    """Return the ports of ``component``.

    ``TypeError`` if it is not a component; ``ValueError`` if a stream has no handshake, or if
    ``idle``, ``time``, ``waits``, ``deadline`` or ``csr`` has a shape that engines do not support.
    """
    if not isinstance(getattr(component, "signature", None), wiring.Signature):
        raise TypeError(f"component must be a wiring.Component, not {component!r}")
    design = Design()
    for name, flow, signature, value in _members(component.signature, component, ""):
        if signature is None and name == "rst":
            continue  # driven by the engine, as is the clock
        if signature is None:
            bits = Value.cast(value)
            init = getattr(bits, "init", 0)
            design.signals[name] = SignalPort(name, flow == In, len(bits), init, bits)
        elif isinstance(signature, stream.Signature):
            if signature.always_valid or signature.always_ready:
                raise ValueError(f"stream {name} must have valid and ready, not {signature!r}")
            payload = Value.cast(value.payload)
            design.streams[name] = StreamPort(name, flow == In, len(payload), payload,
                                              Value.cast(value.valid), Value.cast(value.ready))
        else:
            design.registers = {member: Value.cast(getattr(value, member))
                                for member in AXI_MEMBERS}
    _check(design)
    return design


def _members(signature, interface, prefix: str) -> Iterator[tuple]:
    for name, member in signature.members.items():
        values = [(prefix + name, getattr(interface, name))]
        for size in member.dimensions:
            values = [(f"{path}__{i}", value[i]) for path, value in values for i in range(size)]
        for path, value in values:
            if member.is_port:
                yield path, member.flow, None, value
                continue
            inner = member.signature
            flipped = isinstance(inner, wiring.FlippedSignature)
            plain = inner.flip() if flipped else inner
            if isinstance(plain, stream.Signature):
                yield path, In if flipped else wiring.Out, plain, value
            elif path == "csr" and set(AXI_MEMBERS) <= set(inner.members):
                yield path, member.flow, plain, value
            else:
                yield from _members(inner, value, f"{path}__")


def _check(design: Design) -> None:
    for name, is_input, width in (("idle", False, 1), ("time", True, 32), ("waits", False, 1),
                                  ("deadline", False, 32)):
        port = design.signals.get(name)
        if port is not None and (port.is_input, port.width) != (is_input, width):
            kind = "input" if is_input else "output"
            raise ValueError(f"port {name} must be an {kind} of {width} bits, not {port.value!r}")
    if ("waits" in design.signals) != ("deadline" in design.signals):
        raise ValueError("ports waits and deadline must be defined together")
    if design.registers:
        for name in ("awaddr", "wdata", "araddr", "rdata"):
            if len(design.registers[name]) > 32:
                raise ValueError(f"csr.{name} must have at most 32 bits, "
                                 f"not {len(design.registers[name])!r}")
