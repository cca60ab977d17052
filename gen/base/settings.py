"""Parser of ``field=value`` settings on a command line."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from gen.base.numbers import integer, number
from rtl.config import NicConfig

__all__ = ["config_types", "configure", "overridden", "parse_settings", "setting_name"]

_BOOLS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False,
          "on": True, "off": False}
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,25}")


def config_types() -> dict[str, type]:
    """Return the type of each field of ``NicConfig``."""
    return {f.name: f.type for f in fields(NicConfig)}  # type: ignore[misc]


def parse_settings(settings: Iterable[str], types: Mapping[str, type]) -> dict[str, Any]:
    """Return the values of ``settings``, each ``field=value``, by field.

    types: type of each field: ``int`` (decimal or 0x...), ``bool``, ``float`` or ``str``.

    Raises ``ValueError`` with a setting that is malformed, repeated, of an unknown field or of the
    wrong type.
    """
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ValueError(f"setting must be field=value, not {setting!r}")
        if name not in types:
            raise ValueError(f"no such field: {name} (fields: {', '.join(sorted(types))})")
        if name in values:
            raise ValueError(f"{name} must be set once: remove {name}={text.strip()}")
        values[name] = _value(name, text.strip(), types[name])
    return values


def setting_name(setting: str) -> str:
    """Return the field of a setting ``field=value``."""
    return setting.partition("=")[0].strip()


def overridden(settings: Iterable[str], by: Iterable[str]) -> tuple[str, ...]:
    """Return ``settings`` without the fields that ``by`` sets, followed by ``by``."""
    last = tuple(by)
    names = set(map(setting_name, last))
    return (*(each for each in settings if setting_name(each) not in names), *last)


def _value(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() not in _BOOLS:
            raise ValueError(f"{name} must be true or false, not {text!r}")
        return _BOOLS[text.lower()]
    if kind is int or kind is float:
        try:
            if kind is float:
                return number(text)
            return int(text, 16) if _HEX.fullmatch(text) else integer(text)
        except ValueError:
            what = "an integer" if kind is int else "a number"
            raise ValueError(f"{name} must be {what}, not {text!r}") from None
    return text


def configure(base: NicConfig, settings: Iterable[str]) -> NicConfig:
    """Return ``base`` with ``settings`` applied. Raises ``ValueError`` if they are invalid."""
    return base.with_fields(**parse_settings(settings, config_types()))
