"""Profiles: the timing constants that ship, one TOML file each, with their sources."""

from importlib.resources import files
from typing import TypeVar

from .schema import read_toml

__all__ = ["load_profile", "profile_names"]

T = TypeVar("T")


def profile_names(prefix: str = "") -> list[str]:
    """Return the names of the profiles that ship and begin with ``prefix``."""
    folder = files("host") / "profiles"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir()
                  if f.name.endswith(".toml") and f.name.startswith(prefix))


def load_profile(name: str, kind: type[T]) -> T:
    """Return the profile of that name as a dataclass; ``ValueError`` lists those there are."""
    if name not in profile_names():
        raise ValueError(f"profile must be one of {', '.join(profile_names())}, not {name!r}")
    return read_toml(str(files("host") / "profiles" / f"{name}.toml"), kind)
