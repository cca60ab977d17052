"""Uncertain constants: listed as unverified or second hand, and not measured since."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from host.systems.devices import profiles_of
from host.toml.profile import load_profile
from host.toml.provenance import Constant, constants
from sim.evaluation.cluster import Cluster

__all__ = ["frozen", "uncertain"]

_CPU, _CHARGED = "cpu_", ("graph_key_ns",)
"""Name prefix of CPU profiles, and their constants that compared systems are charged: CPUs only
form mini-batches."""


@cache
def frozen() -> Mapping[str, str]:
    """Return the day, ``2026-11-23``, of each ``profile.constant`` that ``frozen.toml`` lists."""
    text = (files("sim.experiments.sensitivity") / "frozen.toml").read_text(encoding="utf-8")
    return {f"{profile}.{name}": day for day, profiles in tomllib.loads(text).items()
            for profile, names in profiles.items() for name in names}


def uncertain(cluster: Cluster) -> dict[str, Constant]:
    """Return every uncertain constant of a cluster's profiles, by ``profile.constant``.

    A constant is uncertain if it is unverified or second hand, or if ``frozen.toml`` lists it and
    it has not been measured (status M). A better source alone does not remove it.
    """
    listed = frozen()
    profiles = profiles_of(cluster.software, cluster.gpu, cluster.link, cluster.network,
                           cluster.inside)
    found = {f"{name}.{constant.name}": constant for name, kind in profiles.items()
             for constant in constants(load_profile(name, kind))
             if not name.startswith(_CPU) or constant.name in _CHARGED}
    return {name: constant for name, constant in found.items()
            if constant.uncertain or (name in listed and constant.status != "M")}
