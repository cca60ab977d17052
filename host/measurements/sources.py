"""The sources of figures, split into those of constants and those that are only checked against."""

from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files

from host.toml.schema import read_toml

__all__ = ["Source", "Sources", "sources"]


@dataclass(frozen=True)
class Source:
    """Members: ``name``; ``what`` it says; ``where`` it is, with its version; ``licence``;
    ``cite``, words by which a constant's source would name it.
    """

    name: str
    what: str
    where: str
    licence: str
    cite: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.cite or not all(self.cite):
            raise ValueError("cite must be at least one word, none empty")

    def named_in(self, text: str) -> bool:
        """Return whether ``text`` names this source."""
        return any(word.lower() in text.lower() for word in self.cite)


@dataclass(frozen=True)
class Sources:
    """Members: ``split``, the day of the division, as in ``2026-11-23``; ``constants``, sources
    that constants may come from; ``checks``, those that are only checked against.

    Raises ``ValueError`` for a malformed day, or a name on both sides.
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
            raise ValueError("checks must have names of their own")

    def check_only(self, text: str) -> Source | None:
        """Return the source that ``text`` names although models are only checked against it."""
        return next((source for source in self.checks if source.named_in(text)), None)

    def of_check(self, name: str) -> Source:
        """Return a source that models are checked against. Raises ``KeyError`` for no such one."""
        return {source.name: source for source in self.checks}[name]


@cache
def sources() -> Sources:
    """Return the sources that ship, ``sources.toml``."""
    return read_toml(str(files("host") / "measurements" / "sources.toml"), Sources)
