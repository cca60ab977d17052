"""DSP48E2, by its registers: AREG, BREG, CREG, DREG, ADREG, MREG, PREG and control registers.

The slice is a graph of stages (UG579, figure 1-1): the inputs, the pre-adder, the multiplier, the
adder, the outputs. Paths begin and end at the stages with a register. All bits of a bus have the
delay of the slowest bit. Bit i of the product depends on bits 0 to i of the factors.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gen.timing.cells.model import (
    Arc,
    Capture,
    CellTiming,
    Inner,
    Launch,
    Pin,
    number,
    pins,
    text,
)
from gen.timing.delays import DELAYS

__all__ = ["dsp"]

_PS = DELAYS["dsp"]
_FACTOR_BITS = {"A": 27, "B": 18, "D": 27}
_CONTROLS = {"OPMODE": "OPMODEREG", "ALUMODE": "ALUMODEREG", "CARRYIN": "CARRYINREG",
             "CARRYINSEL": "CARRYINSELREG", "INMODE": "INMODEREG"}
_OUTPUTS = ("P", "CARRYOUT")
_CASCADE_OUTPUTS = ("PCOUT", "CARRYCASCOUT", "MULTSIGNOUT")
_CASCADE_INPUTS = ("PCIN", "CARRYCASCIN", "MULTSIGNIN")
# Clock enables and resets, by register.
_REGISTER_PINS = {
    "AREG": ("CEA1", "CEA2", "RSTA"), "BREG": ("CEB1", "CEB2", "RSTB"), "CREG": ("CEC", "RSTC"),
    "DREG": ("CED", "RSTD"), "ADREG": ("CEAD", "RSTD"), "MREG": ("CEM", "RSTM"),
    "PREG": ("CEP", "RSTP"), "INMODEREG": ("CEINMODE", "RSTINMODE"),
    "OPMODEREG": ("CECTRL", "RSTCTRL"), "CARRYINSELREG": ("CECTRL", "RSTCTRL"),
    "ALUMODEREG": ("CEALUMODE", "RSTALUMODE"), "CARRYINREG": ("CECARRYIN", "RSTALLCARRYIN")}


class _Stage(NamedTuple):
    """A stage: its sources with their delays, and the setup of its register or ``None``."""

    sources: tuple[tuple[str, float], ...]
    setup: float | None = None


def dsp(parameters: Mapping[str, str | int], widths: Mapping[str, int]) -> CellTiming:
    """Return the timing of DSP48E2.

    Arcs are the paths from inputs to outputs without a register. Launches and captures belong to
    the registers. ``inner`` contains the longest path between registers.

    Raises ``ValueError`` for unknown settings and for ``USE_PATTERN_DETECT``.
    """
    text(parameters, "USE_PATTERN_DETECT", "NO_PATDET", "NO_PATDET")
    registers = {name: number(parameters, name, 1) for name in _REGISTER_PINS}
    stages = _stages(parameters, registers)
    arcs: list[Arc] = []
    launches: list[Launch] = []
    captures: list[Capture] = []
    for port in (*_OUTPUTS, *_CASCADE_OUTPUTS, "ACOUT", "BCOUT"):
        outputs = pins(port, widths)
        if not outputs:
            continue
        # Only register P is in front of the output buffers.
        for source, ps in _reach(stages, port).items():
            if source in stages:
                launches += [Launch(out, ps + _PS["register"]) for out in outputs]
            else:
                arcs += [Arc(pin, out, ps) for pin in pins(source, widths) for out in outputs
                         if _depends(port, out.bit, source, pin.bit)]
    ends: dict[str, float] = {}
    inner = 0.0
    for name, stage in stages.items():
        if stage.setup is None:
            continue
        for source, ps in _reach(stages, name).items():
            if source in stages:
                inner = max(inner, _PS["register"] + ps + stage.setup)
            else:
                ends[source] = max(ends.get(source, ps + stage.setup), ps + stage.setup)
    captures += [Capture(pin, ps, "control" if port in _CONTROLS else "data")
                 for port, ps in ends.items() for pin in pins(port, widths)]
    served = {port for name, ports in _REGISTER_PINS.items() if registers[name] for port in ports}
    for port in sorted(served & widths.keys()):
        kind = "reset" if port.startswith("RST") else "enable"
        captures.append(Capture(Pin(port), _PS[kind], kind))
    # One launch for each output: the latest.
    latest: dict[Pin, float] = {}
    for launch in launches:
        latest[launch.pin] = max(latest.get(launch.pin, launch.ps), launch.ps)
    return CellTiming("dsp", tuple(arcs),
                      tuple(Launch(pin, ps) for pin, ps in latest.items()), tuple(captures),
                      ("CLK",), (Inner(inner),) if inner else ())


def _stages(parameters: Mapping[str, str | int], registers: Mapping[str, int]
            ) -> dict[str, _Stage]:
    """Return the stages that the settings use. A name without a stage is an input port."""
    def stage(register: str, setup: str, *sources: tuple[str, float]) -> _Stage:
        """Add a stage. With a register, ``setup`` replaces the delay to the stage's own output."""
        return _Stage(sources, _PS[setup] if registers.get(register) else None)

    def entry(register: str, port: str, name: str) -> _Stage:
        """Add an input and its register, whose setup includes the path from the pin."""
        if registers[register]:
            return _Stage(((port, 0),), _PS[f"{name}_setup"])
        return _Stage(((port, _PS[f"{name}_in"]),))

    product = text(parameters, "USE_MULT", "MULTIPLY", "MULTIPLY", "DYNAMIC", "NONE") != "NONE"
    factors = {"A": text(parameters, "AMULTSEL", "A", "A", "AD"),
               "B": text(parameters, "BMULTSEL", "B", "B", "AD")}
    added = text(parameters, "PREADDINSEL", "A", "A", "B").lower()
    source = {x: text(parameters, f"{x}_INPUT", "DIRECT", "DIRECT", "CASCADE") for x in "AB"}
    stages = {x.lower(): entry(f"{x}REG", f"{x}CIN" if source[x] == "CASCADE" else x, x.lower())
              for x in "AB"}
    stages["c"] = entry("CREG", "C", "c")
    for port, register in _CONTROLS.items():
        stages[port.lower()] = entry(register, port, "control")
    operands: list[tuple[str, float]] = [("c", _PS["add"])]
    operands += [(port.lower(), _PS["add"]) for port in _CONTROLS if port != "INMODE"]
    operands += [(port, _PS["cascade_add"]) for port in _CASCADE_INPUTS]
    if product:
        factor = _PS["pass"] + _PS["multiply"]
        if "AD" in factors.values():
            stages["d"] = entry("DREG", "D", "d")
            stages["ad"] = stage("ADREG", "preadd_setup", (added, _PS["preadd"]),
                                 ("d", _PS["preadd"]), ("inmode", _PS["preadd"]))
        stages["m"] = stage("MREG", "m_setup", *((("ad" if chosen == "AD" else x.lower()), factor)
                                                 for x, chosen in factors.items()))
        operands.append(("m", _PS["m_pass"] + _PS["add"]))
    else:
        # The adder takes the concatenation of A and B.
        operands += [("a", _PS["pass"] + _PS["add"]), ("b", _PS["pass"] + _PS["add"])]
    stages["p"] = stage("PREG", "p_setup", *operands)
    # A register's delay includes the buffer behind the adder.
    out = 0 if registers["PREG"] else _PS["p_out"]
    extra = _PS["cascade_out"] - _PS["p_out"]
    stages |= {port: _Stage((("p", out),)) for port in _OUTPUTS}
    stages |= {port: _Stage((("p", out + extra),)) for port in _CASCADE_OUTPUTS}
    stages |= {f"{x}COUT": _Stage(((x.lower(), 0),)) for x in "AB"}
    return stages


def _reach(stages: Mapping[str, _Stage], name: str) -> dict[str, float]:
    """Return the registers and input ports that reach ``name``, with the longest delay of each."""
    found: dict[str, float] = {}
    for source, ps in _steps(stages, name):
        found[source] = max(found.get(source, ps), ps)
    return found


def _steps(stages: Mapping[str, _Stage], name: str) -> Iterator[tuple[str, float]]:
    for source, ps in stages[name].sources:
        if source not in stages or stages[source].setup is not None:
            yield source, ps
        else:
            for origin, before in _steps(stages, source):
                yield origin, before + ps


def _depends(port: str, bit: int, source: str, source_bit: int) -> bool:
    """Return whether bit ``bit`` of output ``port`` depends on bit ``source_bit`` of input
    ``source``."""
    if port in ("ACOUT", "BCOUT"):
        return bit == source_bit
    if port not in ("P", "PCOUT"):
        return True
    if source in _FACTOR_BITS:
        return source_bit < _FACTOR_BITS[source] and source_bit <= bit
    return source not in ("C", "PCIN") or source_bit <= bit
