"""Uncertain constants: listed as unverified or second hand, and not measured since."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from host.systems.devices import profiles_of
from host.toml.profile import load_profile
from host.toml.provenance import Constant, constants

__all__ = ["frozen", "frozen_on", "uncertain"]


@cache
def frozen() -> Mapping[str, str]:
    """Return the day, ``2026-11-23``, of each ``profile.constant`` that ``frozen.toml`` lists."""
    text = (files("sim.experiments.sensitivity") / "frozen.toml").read_text(encoding="utf-8")
    return {f"{profile}.{name}": day for day, profiles in tomllib.loads(text).items()
            for profile, names in profiles.items() for name in names}


def frozen_on() -> str:
    """Return the first day of the list."""
    return min(frozen().values())


def uncertain(softwares: Iterable[str], gpu: str, without: tuple[str, ...] = ()
             ) -> dict[str, Constant]:
    """Return every uncertain constant of the profiles of an evaluation, by ``profile.constant``.

    A constant is uncertain if it is unverified or second hand, or if ``frozen.toml`` lists it and
    it has not been measured (status M). A better source alone does not remove it.

    ``without``: name prefixes of profiles to skip.
    """
    listed = frozen()
    profiles = {name: kind for software in softwares
                for name, kind in profiles_of(software, gpu).items()}
    found = {f"{name}.{constant.name}": constant for name, kind in profiles.items()
             if not name.startswith(without) for constant in constants(load_profile(name, kind))}
    return {name: constant for name, constant in found.items()
            if constant.uncertain or (name in listed and constant.status != "M")}
