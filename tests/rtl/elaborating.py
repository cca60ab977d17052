"""Random configurations: each is rejected in one line, or its NIC elaborates."""

import random
from dataclasses import fields

from amaranth.hdl import Fragment, Instance

from gen.verilog.platform import ram_instance
from rtl.config import PRESETS, NicConfig
from rtl.nic import SmartNic

_SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 21, 22, 24, 30, 32, 48, 63, 64, 65, 100, 128, 130,
          139, 140, 141, 144, 240, 256, 257, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536,
          131072, 262144)
_OTHERS = {"name": ("custom", "no-name"), "policy": ("lru", "fifo"),
           "net_framing": ("ethernet", "udp", "host"), "link": (False, True),
           "training": (False, True), "short_vectors": (False, True),
           "code_vectors": (False, True),
           "gradient_sums": ("exact", "float32", "rounded")}
_FIELDS = {field.name: _OTHERS.get(field.name, _SIZES) for field in fields(NicConfig)}


class ElaborationPlatform:
    """Platform that elaborates each shared unit once and leaves memories out."""

    ram_instance = staticmethod(ram_instance)
    known: set[str] = set()
    """Names of the units that were elaborated, in any configuration."""

    def shared_instance(self, unit, name: str, ports) -> Instance:
        """Elaborate ``unit`` if its ``name`` is new; return a black box."""
        if name not in self.known:
            Fragment.get(unit, self)
            self.known.add(name)
        return Instance(name)


def elaborate(config: NicConfig) -> None:
    """Build every block of the NIC of ``config``, without converting it."""
    Fragment.get(SmartNic(config), ElaborationPlatform())


def one_line(error: Exception, changes: dict) -> bool:
    """Return whether ``error`` is one line that names a field of ``changes`` and its value."""
    text = str(error)
    return "\n" not in text and any(
        name in text and repr(value) in text for name, value in changes.items())


def drawn(rng: random.Random) -> tuple[NicConfig | None, dict]:
    """Return a configuration, None if it is rejected, and the fields that differ from a preset.

    Two draws of three combine values that are valid alone; the third combines any values.
    """
    base = PRESETS[rng.choice(list(PRESETS))]
    changes: dict = {}
    good = rng.random() < 2 / 3
    for name in rng.sample(list(_FIELDS), rng.randint(2, 8)):
        values = [value for value in _FIELDS[name] if not good or alone(base, name, value)]
        changes[name] = rng.choice(values)
    if rng.random() < 1 / 2:
        changes["link"] = True
    try:
        return base.with_fields(**changes), changes
    except (ValueError, TypeError) as error:
        assert one_line(error, changes), (changes, error)
        return None, changes


def alone(base: NicConfig, name: str, value: object) -> bool:
    """Return whether ``base`` with only ``name`` changed is accepted."""
    try:
        base.with_fields(**{name: value})
    except (ValueError, TypeError):
        return False
    return True
