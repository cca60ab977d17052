"""Reader of ``designs.toml``: public designs and Vivado's figures, with their source.

A figure is of one of three kinds. ``maximum``: the authors searched for the shortest period that
Vivado met. ``met``: Vivado met a constraint; the figure is a lower bound of the maximum.
``achieved``: the period less the worst slack of one routed run. Vivado stops once the constraint is
met: the maximum may be higher, but the paths are those of a real placement.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["FAMILIES", "KINDS", "SURROUNDINGS", "Design", "Package", "Published", "read_designs"]

KINDS = ("maximum", "met", "achieved")
SURROUNDINGS = ("alone", "full design")
FAMILIES = ("UltraScale", "UltraScale+")
"""UltraScale is a 20 nm family, slower than UltraScale+, whose delays we use."""
SPEED_GRADES = (-1, -2, -3)

SHIPPED = Path(__file__).parent / "designs.toml"


@dataclass(frozen=True)
class Published:
    """One figure: ``mhz`` of ``kind`` on ``device``, and the file that contains it."""

    device: str
    family: str
    speed_grade: int
    mhz: float
    kind: str
    surroundings: str
    tool: str
    where: str


@dataclass(frozen=True)
class Package:
    """The source of the Verilog: ``files`` below ``folder`` of an installed PyPI package.

    ``licence_file`` is a path below the package's metadata folder.
    """

    name: str
    version: str
    module: str
    folder: str
    files: tuple[str, ...]
    licence_file: str


@dataclass(frozen=True)
class Design:
    """A public design.

    Members
    -------
    package: source of the Verilog; the repository of a design without it contains only figures.
    top, parameters: of the measured module.
    clocks: its clock ports.
    recorded: our recorded estimate in MHz in the three cases, from the source at ``commit``;
        ``None`` if the design was not mapped. A test recomputes the estimates of designs with a
        package.
    recorded_on_vivados_netlist: our estimate for the netlist that Vivado wrote after routing
        (beside the report). Its cells are the cells of the figure, which excludes errors of Yosys's
        mapping.
    """

    name: str
    what: str
    repository: str
    commit: str
    licence: str
    top: str
    clocks: tuple[str, ...]
    published: tuple[Published, ...]
    parameters: Mapping[str, int] = field(default_factory=dict)
    package: Package | None = None
    recorded: tuple[float, float, float] | None = None
    recorded_on_vivados_netlist: tuple[float, float, float] | None = None


def read_designs(path: Path = SHIPPED) -> tuple[Design, ...]:
    """Return the designs of the file ``path``.

    ``ValueError`` names the file, the design, the field and its value.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        designs = tuple(_design(table) for table in _tables(tables, "design", "the file"))
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error
    names = [design.name for design in designs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path.name}: name must differ between designs, not {name!r} twice")
    return designs


def _design(table: Any) -> Design:
    name = _text(table, "name", "a design")
    owner = f"design {name!r}"
    _known(table, owner, Design)
    package = table.get("package")
    return Design(
        name=name,
        **{key: _text(table, key, owner)
           for key in ("what", "repository", "commit", "licence", "top")},
        clocks=_texts(table, "clocks", owner),
        published=tuple(_published(entry, f"{owner}, published[{index}]")
                        for index, entry in enumerate(_tables(table, "published", owner))),
        parameters=_parameters(table.get("parameters", {}), owner),
        package=None if package is None else _package(package, f"{owner}, package"),
        recorded=_recorded(table, "recorded", owner),
        recorded_on_vivados_netlist=_recorded(table, "recorded_on_vivados_netlist", owner))


def _recorded(table: Any, key: str, owner: str) -> tuple[float, float, float] | None:
    mhz = table.get(key)
    if mhz is None:
        return None
    if (not isinstance(mhz, list) or len(mhz) != 3
            or not all(isinstance(value, int | float) for value in mhz)
            or not mhz[0] >= mhz[1] >= mhz[2] > 0):
        raise ValueError(f"{owner}: {key} must be three falling numbers above 0, not {mhz!r}")
    return mhz[0], mhz[1], mhz[2]


def _published(table: Any, owner: str) -> Published:
    _known(table, owner, Published)
    mhz = _value(table, "mhz", owner)
    if isinstance(mhz, bool) or not isinstance(mhz, int | float) or not 0 < mhz < 2000:
        raise ValueError(f"{owner}: mhz must be a number between 0 and 2000, not {mhz!r}")
    return Published(
        **{key: _text(table, key, owner) for key in ("device", "tool", "where")},
        family=_one_of(table, "family", FAMILIES, owner),
        speed_grade=_one_of(table, "speed_grade", SPEED_GRADES, owner),
        mhz=float(mhz),
        kind=_one_of(table, "kind", KINDS, owner),
        surroundings=_one_of(table, "surroundings", SURROUNDINGS, owner))


def _package(table: Any, owner: str) -> Package:
    _known(table, owner, Package)
    return Package(
        **{key: _text(table, key, owner)
           for key in ("name", "version", "module", "folder", "licence_file")},
        files=_texts(table, "files", owner))


def _parameters(table: Any, owner: str) -> dict[str, int]:
    if not isinstance(table, dict):
        raise ValueError(f"{owner}: parameters must be a table, not {table!r}")
    for key, value in table.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{owner}: parameters.{key} must be an integer, not {value!r}")
    return dict(table)


def _tables(table: Mapping[str, Any], key: str, owner: str) -> list[Any]:
    found = _value(table, key, owner)
    if not isinstance(found, list) or not found:
        raise ValueError(f"{owner}: {key} must be one table or more, not {found!r}")
    return found


def _known(table: Any, owner: str, kind: type) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{owner} must be a table, not {table!r}")
    allowed = kind.__dataclass_fields__
    for key in table:
        if key not in allowed:
            raise ValueError(f"{owner}: unknown field {key!r}; the fields are {', '.join(allowed)}")


def _value(table: Any, key: str, owner: str) -> Any:
    if not isinstance(table, dict):
        raise ValueError(f"{owner} must be a table, not {table!r}")
    if key not in table:
        raise ValueError(f"{owner}: {key} is missing")
    return table[key]


def _text(table: Any, key: str, owner: str) -> str:
    value = _value(table, key, owner)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{owner}: {key} must be a text, not {value!r}")
    return value


def _texts(table: Any, key: str, owner: str) -> tuple[str, ...]:
    value = _value(table, key, owner)
    if not isinstance(value, list) or not value or not all(
            isinstance(entry, str) and entry.strip() for entry in value):
        raise ValueError(f"{owner}: {key} must be a list of texts, not {value!r}")
    return tuple(value)


def _one_of(table: Any, key: str, allowed: tuple[Any, ...], owner: str) -> Any:
    value = _value(table, key, owner)
    if isinstance(value, bool) or value not in allowed:
        raise ValueError(
            f"{owner}: {key} must be one of {', '.join(map(str, allowed))}, not {value!r}")
    return value
