"""Status and source of a profile's numbers."""

from dataclasses import dataclass, field, fields
from importlib.resources import files

import pytest

from host.devices.cpu import CpuProfile
from host.devices.mpi import MpiProfile
from host.devices.nccl import NcclProfile
from host.devices.software import SoftwareProfile
from host.devices.topology import Level, TopologyProfile
from host.errors import InputError
from host.timing.gpu import GpuProfile
from host.timing.network import NetworkProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile, profile_hash, profile_names
from host.toml.provenance import STATUSES, check_source, constants, scaled, uncertain
from host.toml.schema import read_toml

KINDS = {"gpu": GpuProfile, "pcie": PcieProfile, "ethernet": NetworkProfile,
         "software": SoftwareProfile, "cpu": CpuProfile, "mpi": MpiProfile, "nccl": NcclProfile,
         "topology": TopologyProfile}


@dataclass(frozen=True)
class Small:
    name: str
    rate_gb_s: float
    lanes: int = 4
    on: bool = True
    hit_fraction: float = 0.4
    source: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        check_source(self)


def test_lists_every_number_in_order_with_status_and_source():
    small = Small("s", 2.0, source={"rate": "[S] a  sheet,\n page 3", "lanes": "[C] ours"})
    assert [(c.name, c.value, c.status, c.source) for c in constants(small)] == [
        ("rate_gb_s", 2.0, "S", "a sheet, page 3"), ("lanes", 4, "C", "ours"),
        ("hit_fraction", 0.4, "U", "the profile does not say")]
    assert [c.name for c in uncertain(small)] == ["hit_fraction"]


@pytest.mark.parametrize("status", STATUSES)
def test_which_statuses_are_uncertain(status):
    small = Small("s", 2.0, source={name: f"[{status}] x"
                                    for name in ("rate_gb_s", "lanes", "hit_fraction")})
    assert {c.status for c in constants(small)} == {status}
    assert len(uncertain(small)) == (3 if status in ("U", "S2") else 0)


@pytest.mark.parametrize("name", profile_names())
def test_profiles_that_ship_say_it_of_every_number(name):
    profile = load_profile(name, KINDS[name.split("_")[0]])
    listed = constants(profile)
    holders = profile.levels if isinstance(profile, TopologyProfile) else (profile,)
    numbers = [getattr(holder, f.name) for holder in holders for f in fields(holder)
               if type(getattr(holder, f.name)) in (int, float)]
    assert [c.value for c in listed] == numbers and numbers
    assert all(c.source != "the profile does not say" for c in listed)


def test_levels_are_listed_and_scaled_by_their_path():
    profile = TopologyProfile("t", (Level("a", 2, 10.0, 1.0), Level("b", 3, 20.0, 2.0)))
    assert [c.name for c in constants(profile)] == [
        f"levels[{k}].{name}" for k in (0, 1) for name in ("joins", "bandwidth_gb_s", "one_way_us")]
    slower = scaled(profile, "levels[1].bandwidth_gb_s", 0.5)
    assert [level.bandwidth_gb_s for level in slower.levels] == [10.0, 10.0]
    assert slower.levels[0] == profile.levels[0] and profile.levels[1].bandwidth_gb_s == 20.0


def test_scaled_keeps_kinds_and_bounds():
    small = Small("s", 2.0)
    assert scaled(small, "rate_gb_s", 2).rate_gb_s == 4.0
    assert scaled(small, "lanes", 0.1).lanes == 1 and type(scaled(small, "lanes", 2).lanes) is int
    assert scaled(small, "hit_fraction", 2).hit_fraction == 0.8
    assert scaled(small, "hit_fraction", 4).hit_fraction == 1.0
    for name in ("on", "name", "none", "rate_gb_s.x", "levels[0].joins"):
        with pytest.raises(ValueError, match=r"^name must be one of rate_gb_s, lanes, hit_fracti"):
            scaled(small, name, 2.0)


@pytest.mark.parametrize("kind, prefix", [(kind, prefix) for prefix, kind in KINDS.items()])
def test_every_uncertain_constant_can_be_halved_and_doubled(kind, prefix):
    for name in profile_names(prefix + "_"):
        profile = load_profile(name, kind)
        for constant in uncertain(profile):
            for factor in (0.5, 2.0):
                new = {c.name: c.value for c in constants(scaled(profile, constant.name, factor))}
                old = {c.name: c.value for c in constants(profile)}
                assert [n for n in new if new[n] != old[n]] in ([constant.name], [])
                assert new[constant.name] == (constant.value * factor if not
                                              constant.name.endswith("_fraction")
                                              else min(1.0, constant.value * factor))


def test_hash_of_a_profile_is_that_of_what_it_says(tmp_path):
    path = tmp_path / "bus.toml"
    path.write_text('name = "bus"\none_way_us = 0.5\nbandwidth_gb_s = 10.0\n')
    bus = profile_hash(load_profile(path, PcieProfile))
    assert len(bus) == 64 and profile_hash(PcieProfile("bus", 0.5, 10.0)) == bus
    path.write_text('# slow\nbandwidth = "80 Gb/s"\none_way = "500 ns"\nname = "bus"\n')
    assert profile_hash(load_profile(path, PcieProfile)) == bus
    for other in (PcieProfile("bus", 0.5, 10.5), PcieProfile("b", 0.5, 10.0),
                  PcieProfile("bus", 0.5, 10.0, write_us=0.5),
                  PcieProfile("bus", 0.5, 10.0, source={"one_way": "[S] a sheet"})):
        assert profile_hash(other) != bus
    assert len({profile_hash(load_profile(name, KINDS[name.split("_")[0]]))
                for name in profile_names()}) == len(profile_names())


@pytest.mark.parametrize("text, message", [
    ('name = "s"\nrate = "2 GB/s"\n[source]\nrat = "[S] x"\n',
     "source.rat must be for one of the numbers hit_fraction, lanes, rate_gb_s"),
    ('name = "s"\nrate = "2 GB/s"\nsource.on = "[S] x"\n', "source.on must be for one of"),
    ('name = "s"\nrate = "2 GB/s"\n\n[source]\n  rate = "a sheet"\n',
     "source.rate must begin with one of [S], [S2], [D], [M], [C], [U] and name the source, "
     "not 'a sheet'"),
    ('name = "s"\nrate = "2 GB/s"\n[source]\nrate = "[S]"\n', "source.rate must begin"),
    ('name = "s"\nrate = "2 GB/s"\n[source]\nrate = "[X] y"\n', "source.rate must begin"),
    ('name = "s"\nrate = "2 GB/s"\n[source]\nrate = 3\n', "source.rate must be a string"),
    ('name = "s"\nrate = "2 GB/s"\nsource = "[S] x"\n', "source must be a table"),
])
def test_complaints_name_the_key(tmp_path, text, message):
    path = tmp_path / "small.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_toml(path, Small)
    assert str(caught.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize("name, old, new, message", [
    ("cpu_xeon_6226r", "cores = 16", "cpus = 16", "no such field: cpus (fields: name, cor"),
    ("cpu_xeon_6226r", "cores = 16", "cores = 1.5", "cores must be an integer, not 1.5"),
    ("cpu_xeon_6226r", "operator_us = 5.0", "operator = 5.0",
     "operator must be a string with a number and a unit"),
    ("cpu_xeon_6226r", "operator_us = 5.0", 'operator = "5 GB/s"',
     "operator must have one of the units ns, us, ms, s, not 'GB/s'"),
    ("cpu_xeon_6226r", "operator_us = 5.0", "operator_us = 0",
     "operator_us must be above 0, not 0.0"),
    ("software_eager", 'collective = "mpi"', 'collective = "smoke"',
     "collective must be mpi or nccl, not 'smoke'"),
    ("software_eager", "copy_us = 6.0", "copy_us = -6.0", "copy_us must be at least 0"),
    ("software_eager", "graphs = false", "graphs = 0", "graphs must be true or false"),
    ("nccl_network", "ll_fraction = 0.5", "ll_fraction = 1.5",
     "ll_fraction must be above 0 and at most 1, not 1.5"),
    ("nccl_network", "parallel_peers = 8", "parallel_peers = 0",
     "parallel_peers must be at least 1, not 0"),
    ("mpi_ethernet", "message_us = 3.5\n", "", "field message is missing"),
    ("topology_zionex", "joins = 16", "joins = 0", "levels[1]: joins must be at least 1, not 0"),
    ("topology_zionex", "joins = 16", "joins = 4096", "levels must join at most 4096 endpo"),
    ("gpu_h200", "kernel_us = 1.24", "kernel_us = true", "kernel_us must be a number"),
    ("gpu_h200", "gemm_fraction = 0.9", "gemm_fraction = 2.0",
     "gemm_fraction must be above 0 and at most 1, not 2.0"),
])
def test_mistakes_in_profiles_are_one_line(tmp_path, name, old, new, message):
    text = (files("host") / "profiles" / f"{name}.toml").read_text()
    assert text.count(old) >= 1
    path = tmp_path / f"{name}.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_profile(path, KINDS[name.split("_")[0]])
    assert str(caught.value).startswith(f"{path}: {message}") and "\n" not in str(
        caught.value)
