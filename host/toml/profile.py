"""Profiles: the shipped timing constants, with their sources; one TOML file each."""

import json
import tomllib
from dataclasses import asdict, fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from host.toml.schema import read_toml

__all__ = ["load_profile", "profile_hash", "profile_names"]

T = TypeVar("T")


def _folder():
    # Not a package name: a user's program may shadow it, see embernic_names.
    return Path(__file__).parents[1] / "profiles"


def profile_names(prefix: str = "") -> list[str]:
    """Return the names of the shipped profiles that begin with ``prefix``."""
    return sorted(f.name.removesuffix(".toml") for f in _folder().iterdir()
                  if f.name.endswith(".toml") and f.name.startswith(prefix))


def load_profile(name: str | T, kind: type[T], folder: str | Path = ".",
                 field: str = "profile") -> T:
    """Return the profile of that name, or the TOML file at that path, as a dataclass.

    A path is relative to ``folder``. A profile object is returned unchanged.

    field: name of the option, for error messages.

    Raises ``ValueError``, which lists the profiles of this kind, for an unknown name, and
    :class:`host.errors.InputError` for a malformed file.
    """
    if isinstance(name, kind):
        return name
    if str(name).endswith(".toml"):
        return read_toml(Path(folder, str(name)), kind)
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    fitting = [other for other in profile_names() if _members(other) <= known]
    if name not in fitting:
        raise ValueError(f"{field} must be one of {', '.join(fitting)} or a TOML file, "
                         f"not {name!r}")
    return read_toml(str(_folder() / f"{name}.toml"), kind)


@cache
def _members(name: str) -> frozenset[str]:
    """Return the names of the fields that a built-in profile sets."""
    return frozenset(tomllib.loads((_folder() / f"{name}.toml").read_text()))


def profile_hash(profile: Any) -> str:
    """Return the SHA-256, in hexadecimal, of a profile's fields, to identify results made with it.

    It covers the sources of the numbers, but not the file's notation and comments.
    """
    return sha256(json.dumps(asdict(profile), sort_keys=True).encode()).hexdigest()
