"""TOML files read strictly into frozen dataclasses; every complaint names its place."""

import re
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from .errors import InputError

__all__ = ["read_toml"]

T = TypeVar("T")


def read_toml(path: str | Path, kind: type[T]) -> T:
    """Read ``path`` into the dataclass ``kind``, whose fields are the file's keys.

    Field types may be ``int``, ``float`` (an integer will do), ``bool``, ``str``,
    ``tuple[X, ...]`` and ``dict[str, X]``. A field without a default must be in the file.

    Raises
    ------
    InputError
        The file is not TOML, a field is unknown, missing or of another type, or the dataclass
        refuses its value. Names the line of the field.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        line = error.object[:error.start].count(b"\n") + 1
        column = error.start - error.object.rfind(b"\n", 0, error.start)
        raise InputError(path, line, column, "not UTF-8 text") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = map(int, found.groups()) if found else (text.count("\n") + 1, 1)
        raise InputError(path, line, column, str(error).split(" (at ")[0]) from None

    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind) if field.init}  # type: ignore[arg-type]
    values = {}
    for name, value in content.items():
        if name not in known:
            raise InputError(path, *_place(text, name),
                             f"no such field: {name} (fields: {', '.join(known)})")
        try:
            values[name] = _convert(name, value, hints[name])
        except TypeError as error:
            raise InputError(path, *_place(text, name), str(error)) from None
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(path, text.count("\n") + 1, 1, f"field {name} is missing")
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        named = next((name for name in values
                      if re.match(rf"{re.escape(name)}\b", str(error))), None)
        place = _place(text, named) if named else (1, 1)
        raise InputError(path, *place, str(error)) from None


def _place(text: str, name: str) -> tuple[int, int]:
    """Line and column of the key or table ``name`` at the top of the file."""
    found = re.search(rf"^[ \t]*\[*[ \t]*[\"']?({re.escape(name)})\b", text, re.MULTILINE)
    if not found:
        return 1, 1
    start = found.start(1)
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def _convert(name: str, value: Any, hint: Any) -> Any:
    origin = get_origin(hint)
    if origin is tuple:
        if not isinstance(value, list):
            raise TypeError(f"{name} must be a list, not {value!r}")
        inner = get_args(hint)[0]
        return tuple(_convert(f"{name}[{i}]", item, inner) for i, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise TypeError(f"{name} must be a table, not {value!r}")
        inner = get_args(hint)[1]
        return {key: _convert(f"{name}.{key}", item, inner) for key, item in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        word = {int: "an integer", float: "a number", str: "a string", bool: "true or false"}
        raise TypeError(f"{name} must be {word.get(hint, hint)}, not {value!r}")
    return value
