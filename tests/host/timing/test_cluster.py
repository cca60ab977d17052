import pytest

from host.errors import InputError
from host.timing.cluster import Cluster, cluster_names, load_cluster
from host.timing.network import NetworkProfile
from host.toml.profile import load_profile

GOOD = """name = "mine"
nodes = 2
network = "ethernet_100g_direct"
gpu_memory = "48 GB"
host_memory = "64 GiB"
card_memory = "8 GB"

[pcie]
name = "gen4"
one_way = "350 ns"
bandwidth = "25 GB/s"

[gpu]
name = "mine"
launch = "4 us"
memory_bandwidth = "900 GB/s"
access = "64 B"
streams = 2

[nic]
config = "tiny"
local_cache_size = "8 KiB"
set.dedupe_keys = 128
"""


def write(tmp_path, text=GOOD):
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    return path


def test_reads_names_tables_and_units(tmp_path):
    cluster = load_cluster(write(tmp_path))
    assert cluster.network == load_profile("ethernet_100g_direct", NetworkProfile)
    assert (cluster.pcie.one_way_us, cluster.pcie.bandwidth_gb_s) == (0.35, 25.0)
    assert cluster.gpu.launch_us == 4.0 and cluster.gpu.access_bytes == 64
    assert (cluster.gpu_memory_bytes, cluster.host_memory_bytes) == (48 * 10**9, 64 * 2**30)
    # 32 vectors of 64 float32 values.
    assert cluster.nic.settings == ("local_cache_rows=32", "dedupe_keys=128")
    assert cluster.nic.configure().local_cache_rows == 32


def test_profiles_of_its_own_folder(tmp_path):
    (tmp_path / "slow.toml").write_text(
        'name = "slow"\none_way = "9 us"\nbandwidth = "10 Gb/s"\noverhead = "24 B"\n'
        "switched = true\n")
    path = write(tmp_path, GOOD.replace("ethernet_100g_direct", "slow.toml"))
    assert load_cluster(path).network == NetworkProfile("slow", 9.0, 10.0, 24, True)
    (tmp_path / "slow.toml").write_text('name = "slow"\none_way = 9\n')
    with pytest.raises(InputError, match=r"slow.toml: one_way must be a string with a number"):
        load_cluster(path)


def test_those_that_ship():
    assert {"a100", "direct_pair", "h100", "paper", "paper_terabyte"} <= set(cluster_names())
    for name in cluster_names():
        assert isinstance(load_cluster(name), Cluster) and load_cluster(name).name == name
    paper = load_cluster("paper")
    assert (paper.nodes, paper.gpu.name, paper.nic.config) == (4, "gpu_rtx8000", "kaggle")
    shape = {name: (found.nodes, found.gpus, found.nics, found.network.bandwidth_gbit_s)
             for name in cluster_names() if (found := load_cluster(name)).gpus > 1}
    assert shape == {"two_hosts": (2, 8, 1, 100.0), "zionex": (16, 8, 8, 200.0)}
    assert load_cluster("a100").software == "tuned" and load_cluster("a100").gpu_link
    assert load_cluster("direct_pair").nic.settings == ("local_cache_rows=64",)
    with pytest.raises(ValueError, match=r"cluster must be one of a100, .* or a TOML file, not 'n"):
        load_cluster("none")


@pytest.mark.parametrize("old, new, message", [
    ('"48 GB"', "48", 'gpu_memory must be a string with a number and a unit, such as '
     '"8 GiB" (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB), not 48'),
    ('"48 GB"', '"48"', "gpu_memory must be a string with a number and a unit"),
    ('"48 GB"', '"48 Gb"', "gpu_memory must have one of the units B,"),
    ('"48 GB"', '"-1 GB"', "gpu_memory must be at least 0 B, not -1000000000 B"),
    ("nodes = 2", "nodes = 2.5", "nodes must be an integer, not 2.5"),
    ("nodes = 2", "nodes = 9", "nodes must be between 1 and 8, those of config tiny, not 9"),
    ("nodes = 2", "node = 2", "no such field: node (fields: nodes, network, pcie, gpu, "
     "gpu_memory, host_memory, card_memory, nic, name, gpu_link, software, rdma, gpus, nics, "
     "inside)"),
    ('"ethernet_100g_direct"', '"gpu_v100"', "network: profile must be one of "
     "ethernet_100g_direct, ethernet_100g_switch, ethernet_100g_switch_queues, "
     "ethernet_200g_switch or a TOML file, not 'gpu_v100'"),
    ("nodes = 2", "nodes = 2\ngpus = 0", "gpus must be at least 1, not 0"),
    ("nodes = 2", 'nodes = 2\ngpus = 8\nnics = 3\ninside = "topology_dgx_a100"',
     "nics must divide the 8 gpus of a node, not 3"),
    ("nodes = 2", "nodes = 2\ngpus = 8", "inside must be given where a node has several GPUs, and "
     "only there, not None for 8"),
    ('"ethernet_100g_direct"', "100", "network must be a name or a table, not 100"),
    ('"350 ns"', "0.35", "pcie: one_way must be a string"),
    ('"350 ns"', '"0 s"', "pcie: one_way_us must be above 0, not 0.0"),
    ("streams = 2", "stream = 2", "gpu: no such field: stream"),
    ("streams = 2\n", "", "gpu: field streams is missing"),
    ('"tiny"', '"huge"', "nic: config must be one of tiny, kaggle, avazu, terabyte, not 'huge'"),
    ('"8 KiB"', '"8001 B"', "nic: local_cache_size must be a multiple of a vector, 256 B, "
     "not 8001 B"),
    ('"8 KiB"', '"256 B"',
     "nic: local_cache_size is wrong: local_cache_rows must be between 8 and"),
    ("dedupe_keys = 128", "dedupe_keys = 129", "nic.set: dedupe_keys must be a multiple of"),
    ("dedupe_keys = 128", "dedupe_keys = '128'", "nic: set.dedupe_keys must be an integer or"),
    ("set.dedupe_keys = 128", "set.local_cache_rows = 64",
     "nic.set: local_cache_rows must be given once, here or by the size of the cache"),
])
def test_mistakes(tmp_path, old, new, message):
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_cluster(path)
    found = str(caught.value)
    assert "\n" not in found and f"{path}: {message}" in found


def test_a_missing_profile(tmp_path):
    path = write(tmp_path, GOOD.replace("ethernet_100g_direct", "none.toml"))
    with pytest.raises(InputError, match=r"none\.toml: No such file or directory$"):
        load_cluster(path)


def test_checks_of_the_caller(tmp_path):
    def check(cluster):
        raise ValueError("dedupe_keys must be something else")

    with pytest.raises(InputError, match=r"cluster.toml: nic.set: dedupe_keys must be something"):
        load_cluster(write(tmp_path), check)
