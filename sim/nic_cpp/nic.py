"""Builder of modelled NICs. Reference: :mod:`sim.nic.build`."""

from collections.abc import Sequence
from functools import cache

from host.dlrm.formats import FLOAT32, VectorFormat
from host.model import Model as Dlrm
from host.placement.shard import ShardPlan
from rtl.config import NicConfig
from rtl.control.csr import RegisterBlock
from rtl.nic import SmartNic
from rtl.reset import QUIET_CYCLES
from sim.job.row_places import RowPlaces
from sim.job.settings import Runtime
from sim.nic.build import register_values
from sim.nic.registers import joined
from sim.nic_cpp.engine import ModelEngine
from sim.nic_cpp.layout import BETWEEN

__all__ = ["FastNic", "ModelRegisters"]


class ModelRegisters:
    """Registers of a modelled NIC. Reference: :class:`sim.nic.registers.RegisterFile`.

    Parameter: the modelled NIC.
    """

    def __init__(self, engine: ModelEngine):
        self._engine = engine
        self._write, self._ready = RegisterBlock.LATENCY["write", "answer"], 0
        self.noted: dict[str, list[int]] = {}
        """Values of the counters named to :meth:`note`, in the order of the calls."""

    def begin(self, values: dict[str, int], plan: ShardPlan, bases: Sequence[int] = ()) -> None:
        """Write the registers and the table descriptors before the first packet."""
        self._engine.begin(values, plan, bases)
        # They are written one by one, as on the RTL.
        words = len(values) + len(plan.tables) * (1 + plan.descriptors().shape[1])
        self._ready = QUIET_CYCLES + words * (self._write + BETWEEN)
        self._engine.written(self._ready)

    def write(self, name: str, value: int, cycle: int = 0) -> None:
        """Write a register that changes while the NIC runs; ``KeyError`` for other registers."""
        self._engine.store(name, value & 0xFFFF, cycle)

    def finish(self) -> None:
        """Run until every register is written."""
        self._engine.run(max(self._ready, self._engine.cycle))

    def note(self, *names: str) -> None:
        """Record the present values of counters; ``KeyError`` for an unknown name."""
        counts = self._engine.counts()
        for name in names:
            self.noted.setdefault(name, []).append(counts[name])

    def counters(self) -> dict[str, int | None]:
        """Return every counter, named ``block.name``; None for counters that the model lacks."""
        _, *parts = self._engine.config.optional
        names = dict.fromkeys(_counter_names(*parts))
        return names | {name: value for name, value in self._engine.counts().items()
                        if name in names}


class FastNic:
    """Builder of modelled NICs. Parameter: their configuration."""

    def __init__(self, config: NicConfig):
        self.config = config

    def instance(self, *, skip: bool = True) -> tuple[ModelEngine, ModelRegisters]:
        """Return a NIC and its registers; ``skip`` has no effect here."""
        engine = ModelEngine(self.config)
        return engine, ModelRegisters(engine)

    def configure(self, registers: ModelRegisters, runtime: Runtime, plan: ShardPlan,
                  model: Dlrm, *, node: int, nodes: int, repeats: bool = False,
                  decoded: VectorFormat = FLOAT32) -> None:
        """Configure a NIC as node ``node`` of ``nodes`` for ``model``.

        repeats: whether the NIC finds repeated bags. decoded: see `register_values`.

        ``ValueError`` for a ``step_timeout``, which the model does not implement.
        """
        if runtime.step_timeout:
            raise ValueError("step_timeout must be 0 with fidelity fast, not "
                             f"{runtime.step_timeout!r}")
        registers.begin(
            register_values(self.config, runtime, model, node=node, nodes=nodes,
                            by_table=bool(plan.means.any()), repeats=repeats,
                            decoded=decoded), plan,
            RowPlaces.of(plan, node, model.width).bases if runtime.row_reads else ())


@cache
def _counter_names(link: bool, bags: bool, repeats: bool) -> tuple[str, ...]:
    registers = SmartNic(NicConfig(link=link, owner_bags=64 * bags,
                                   repeat_words=64 * repeats)).registers
    return tuple(joined({register.name: 0 for register in registers if "." in register.name}))
