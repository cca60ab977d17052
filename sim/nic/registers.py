"""Registers of a running NIC by name: written before a run, read after it."""

from functools import cache

from rtl.config import NicConfig
from rtl.control.registers import Register, register_map
from sim.engines import Engine

__all__ = ["RegisterFile", "address_of", "joined"]


@cache
def address_of(config: NicConfig, name: str) -> int:
    """Return the address of a register, not a counter, of a NIC of ``config``; ``KeyError`` for an
    unknown name."""
    return {register.name: register.address for register in register_map(config, {})}[name]


class RegisterFile:
    """Access by name to the registers of one engine.

    Parameters: the engine, and the registers of its design.
    """

    def __init__(self, engine: Engine, registers: list[Register]):
        self._engine = engine
        self._by_name = {register.name: register for register in registers}
        self._noted: list[str] = []
        self.noted: dict[str, list[int]] = {}
        """Values of the reads queued by :meth:`note`, in order, after the next :meth:`read`."""

    @property
    def names(self) -> list[str]:
        """The names of all registers; counters are ``block.name``."""
        return list(self._by_name)

    def write(self, name: str, value: int, cycle: int = 0) -> None:
        """Queue a write; ``KeyError`` for an unknown register."""
        self._engine.write(self._by_name[name].address, value & 0xFFFFFFFF, cycle)

    def table(self, index: int, words: list[int]) -> None:
        """Queue the load of a table descriptor."""
        self.write("table_index", index)
        for position, word in enumerate(words):
            self.write(f"table_word{position}", word)

    def finish(self, limit: int = 1_000_000) -> None:
        """Run until every queued access is done; ``RuntimeError`` after ``limit`` cycles."""
        end = self._engine.cycle + limit
        while self._engine.registers_pending:
            if self._engine.cycle >= end:
                raise RuntimeError(f"registers did not answer within {limit} cycles")
            self._engine.run(self._engine.cycle + 1)

    def read(self, *names: str) -> dict[str, int]:
        """Read registers, running the NIC until all answer; ``KeyError`` for an unknown name."""
        for name in names:
            self._engine.read(self._by_name[name].address)
        self.finish()
        results = self._engine.read_results()
        for name, access in zip(self._noted, results):
            self.noted.setdefault(name, []).append(access.data)
        data = {access.addr: access.data for access in results[len(self._noted):]}
        self._noted = []
        return {name: data[self._by_name[name].address] for name in names}

    def note(self, *names: str) -> None:
        """Queue register reads that are made while the NIC runs; ``KeyError`` for an unknown name.
        The values are in ``noted`` after the next :meth:`read`."""
        for name in names:
            self._engine.read(self._by_name[name].address)
        self._noted += names

    def counters(self) -> dict[str, int]:
        """Read every counter, each named ``block.name``, running the NIC until all answer."""
        return joined(self.read(*(name for name in self.names if "." in name)))


def joined(words: dict[str, int]) -> dict[str, int]:
    """Return the counters in ``words``, values of registers by name. A counter of two registers,
    ``name`` and ``name_high``, has 64 bits."""
    return {name: value | words.get(f"{name}_high", 0) << 32 for name, value in words.items()
            if not (name.endswith("_high") and name.removesuffix("_high") in words)}
