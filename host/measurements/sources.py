"""Sources of figures, split into sources of constants and sources for checks only."""

from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files

from host.toml.schema import read_toml

__all__ = ["Source", "Sources", "sources"]


@dataclass(frozen=True)
class Source:
    """A source of figures.

    Members
    -------
    name: key of the source.
    what: content.
    where: location and version.
    licence: licence.
    cite: words that identify this source in the text of a constant's source.
    """

    name: str
    what: str
    where: str
    licence: str
    cite: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.cite or not all(self.cite):
            raise ValueError("cite must be a non-empty list of non-empty words")

    def named_in(self, text: str) -> bool:
        """Return whether ``text`` names this source."""
        return any(word.lower() in text.lower() for word in self.cite)


@dataclass(frozen=True)
class Sources:
    """The split of the sources.

    Members
    -------
    split: date of the split, such as ``2026-11-23``.
    constants: sources that constants may use.
    checks: sources that only check models.

    Raises ``ValueError`` for a malformed date, or a name on both sides.
    """

    split: str
    constants: tuple[Source, ...]
    checks: tuple[Source, ...]

    def __post_init__(self) -> None:
        try:
            date.fromisoformat(self.split)
        except ValueError:
            raise ValueError(f"split must be a day such as 2026-11-23, "
                             f"not {self.split!r}") from None
        names = [source.name for source in (*self.constants, *self.checks)]
        if len(set(names)) < len(names):
            raise ValueError("checks must have names that constants do not use")

    def check_only(self, text: str) -> Source | None:
        """Return the check-only source that ``text`` names, or None."""
        return next((source for source in self.checks if source.named_in(text)), None)

    def of_check(self, name: str) -> Source:
        """Return the check-only source called ``name``. Raises ``KeyError`` if it does not exist.
        """
        return {source.name: source for source in self.checks}[name]


@cache
def sources() -> Sources:
    """Return the shipped sources, ``sources.toml``."""
    return read_toml(str(files("host") / "measurements" / "sources.toml"), Sources)
