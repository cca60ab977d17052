"""Runs whose vectors cross the network and PCIe in 16 or 8 bits: the bits of the reference, fewer
bytes, and the cycles of the model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.codecs import CODECS
from host.dlrm.dlrm import Dlrm
from host.model import Model
from host.samples import Samples
from rtl.formats import ValueFormat
from sim.cli.main import main
from sim.job.options import RunOptions
from sim.nic import build
from sim.run.run import Run, run
from tests.host.dlrm.mixed import toml_of
from tests.sim.linked import LINKED
from tests.sim.nic_cpp.comparing import compared
from tests.sim.run.results import faultless, totals

MODEL = Model((1000, 5000, 70, 400, 900), 64, 3, (8, 64), (5, 1), "wire",
              ((0, 3), (1, 5), (1, 1), (5, 12), (0, 2)), interaction="cat",
              dimensions=(32, 128, 64, 33, 128), poolings=("sum", "sum", "mean", "sum", "mean"))
"""Vectors of 16, 64, 32, 17 and 64 lanes of 16 bits: 1, 4, 2, 2 and 4 beats; of 10, 40, 20, 13 and
40 lanes of int8: 1, 3, 2, 1 and 3 beats."""
POOLED = replace(MODEL, dimensions=(32, 64, 16, 33, 64))
"""Vectors for a NIC that pools 64 values: 2, 4, 1, 3 and 4 beats of float32."""
ODD = replace(MODEL, dimensions=(32, 40, 16, 33, 48))
"""Three beats of float32 in two beats of lanes."""
SHORT = replace(MODEL, dimensions=(8, 7, 4, 5, 8))
"""Two vectors of float32 to a beat of a packet, and four in lanes."""
SAMPLES, SEED = 48, 1
WIRES = pytest.mark.parametrize("wire", ["float16", "int8"])
EVERY = pytest.mark.parametrize("wire", list(CODECS)[1:])
NODES = pytest.mark.parametrize("nodes", [1, 2, 3])
EQUAL = replace(MODEL, dimensions=(64,) * 5)
"""Vectors of int8 for NICs: tables have one dimension."""
CODES = pytest.mark.parametrize("wire", ["int8", "int8_row"])
HALVES = pytest.mark.parametrize("wire", ["float16", "bfloat16"])


def _options(tmp_path: Path, wire: str, *settings: str, model: Model = MODEL,
             weighted: tuple[int, ...] = (), deliver: str = "unique", **changes) -> RunOptions:
    text, path = toml_of(replace(model, poolings=model.poolings or ("sum",) * 5)), (
        tmp_path / "wire.toml")
    for table in weighted:
        rows = f"rows = {model.rows[table]}\n"
        text = text.replace(rows, f"weighted = true\n{rows}")
    path.write_text(text)
    given = {"config": "tiny", "nodes": 2, "samples": SAMPLES, "mini_batch": 24, "threads": 1,
             "seed": SEED, "wire": wire} | changes
    if isinstance(given.get("pool"), list):
        (tmp_path / "pool.toml").write_text(f"owner = {given['pool']}\n")
        given["pool"] = str(tmp_path / "pool.toml")
    return RunOptions.of(**given, model=str(path), settings=(f"deliver={deliver}", *settings))


def _samples(model: Model) -> Samples:
    return next(generate(model, SAMPLES, SEED))


def _equal(options: RunOptions) -> dict:
    """Return the result of a run whose predictions are those of the reference."""
    predictions, job = [], Run(options)
    result = faultless(job.execute(predictions=predictions.append))
    owner = tuple(np.flatnonzero(job.plan.owner_pooled).tolist())
    expected = Dlrm(job.model, SEED, wire=options.workload.wire, owner_tables=owner).forward(
        _samples(job.model))
    assert np.concatenate(predictions).tobytes() == expected.tobytes()
    assert expected.tobytes() != Dlrm(job.model, SEED).forward(_samples(job.model)).tobytes()
    return result


@NODES
@EVERY
def test_predictions_are_those_of_rounded_rows(tmp_path, wire, nodes):
    result = _equal(_options(tmp_path, wire, nodes=nodes))
    assert result["options"]["wire"] == wire
    lanes = {"int8": "10 to 40 lanes of int8 with zeros to 48",
             "int8_row": "10 to 34 lanes of int8_row with zeros to 48"}.get(
                 wire, f"16 to 64 lanes of {wire} with zeros to 64")
    assert result["notes"] == [
        f"NICs pad vectors of {lanes} (on the network, bags pooled at owners: to a multiple of 16)"]


@pytest.mark.thorough
@EVERY
def test_the_number_of_nodes_changes_no_prediction(tmp_path, wire):
    for given in ({}, {"own_bags": "gpu"}, {"pool": "owner"}):
        results = [_equal(_options(tmp_path, wire, "owner_bags=64", nodes=nodes, **given))
                   for nodes in (1, 2, 3)]
        assert len({result["predictions_sha256"] for result in results}) == 1


@pytest.mark.thorough
@WIRES
@pytest.mark.parametrize("given", [
    {"pool": [1, 2, 3]}, {"pool": "auto"}, {"pool": [0, 4], "own_bags": "gpu"},
    {"pool": "owner", "repeats": "indices"}, {"pool": "owner", "copied_rows": 100},
    {"pool": [1], "nodes": 3, "placement": "0,1,0,1,2"}], ids=str)
def test_sums_at_owners_are_rounded(tmp_path, wire, given):
    result = _equal(_options(tmp_path, wire, "completions=true", **given))
    assert result["bags"]["foreign"] > 0


@pytest.mark.thorough
@WIRES
@pytest.mark.parametrize("pool", ["requester", "owner", [1, 3]], ids=str)
@pytest.mark.parametrize("given", [{}, {"own_bags": "gpu"}], ids=["nic", "gpu"])
def test_weights_multiply_rounded_rows_at_requesters(tmp_path, wire, pool, given):
    _equal(_options(tmp_path, wire, weighted=(1, 2), pool=pool, **given))


@pytest.mark.thorough
@WIRES
@pytest.mark.parametrize("pool", ["requester", "owner"])
@pytest.mark.parametrize("given", [{}, {"own_bags": "gpu"}], ids=["nic", "gpu"])
def test_means_divide_roundedsums(tmp_path, wire, pool, given):
    _equal(_options(tmp_path, wire, "pooling=mean", pool=pool, **given))


@pytest.mark.thorough
@WIRES
@pytest.mark.parametrize("settings", [
    ("gpu_rings=true",), ("remote_cache=false", "local_cache=false"), ("dedupe=false",)], ids=str)
def test_settings_of_nics(tmp_path, wire, settings):
    _equal(_options(tmp_path, wire, *settings))
    _equal(_options(tmp_path, wire, *settings, placement="row", nodes=3))


@pytest.mark.thorough
@WIRES
def test_nics_find_equal_bags(tmp_path, wire):
    alike = replace(MODEL, requests=(5, 9), request_tables=(1, 3))
    text = toml_of(alike).replace('interaction = "cat"', 'interaction = "cat"\nrequests = [5, 9]')
    for table in (1, 3):
        rows = f"rows = {MODEL.rows[table]}\n"
        text = text.replace(rows, f"request = true\n{rows}")
    model = tmp_path / "alike.toml"
    model.write_text(text)
    options = _options(tmp_path, wire, pool="owner", repeats="nic").with_fields(model=str(model))
    assert _equal(options)["repeats"]["share"] > 0.1


@pytest.mark.thorough
@WIRES
@pytest.mark.parametrize("pool", ["requester", "owner"])
def test_a_network_that_loses_frames(tmp_path, wire, pool):
    result = _equal(_options(tmp_path, wire, *LINKED, pool=pool, nodes=3,
                             faults="drop=0.05,corrupt=0.05,duplicate=0.02"))
    assert totals(result)["link_sender.repeated"] > 0


@pytest.mark.thorough
@pytest.mark.parametrize("pool", ["requester", "owner"])
def test_vectors_take_half_the_bytes(tmp_path, pool):
    """Tables of 64 and of 32 values: 4 and 2 beats as float32, 2 and 1 in 16 bits."""
    model = replace(MODEL, dimensions=(64, 32, 64, 32, 64))
    settings = "remote_cache=false", "requester_merge=false", "vector_timeout=30000"
    whole, half = (run(_options(tmp_path, wire, *settings, model=model, pool=pool, in_flight=1))
                   for wire in ("float32", "bfloat16"))
    name = "vector_packager" if pool == "requester" else "bag_vectors"
    sums, halves = totals(faultless(whole)), totals(faultless(half))
    assert sums[f"{name}.vectors"] == halves[f"{name}.vectors"] > 50
    assert sums[f"{name}.beats"] == 2 * halves[f"{name}.beats"]
    for way in ("to_nic_bytes", "from_nic_bytes"):
        assert half["pcie"][way] < whole["pcie"][way]
    assert half["network"]["bytes"] < 0.75 * whole["network"]["bytes"]


@pytest.mark.thorough
@pytest.mark.parametrize("given", [
    {}, {"pool": "owner", "nodes": 3}, {"pool": [1, 2], "own_bags": "gpu"}], ids=str)
def test_the_model_has_the_cycles_of_rtl(tmp_path, given):
    assert compared(_options(tmp_path, "float16", **given)) == 0


@pytest.mark.thorough
@pytest.mark.usefixtures("python_hosts")
def test_the_model_has_the_cycles_of_rtl_with_hosts_in_python(tmp_path):
    assert compared(_options(tmp_path, "bfloat16", pool="owner")) == 0


def test_nics_convert_vectors_that_they_pool(tmp_path):
    result = _equal(_options(tmp_path, "float16", model=POOLED, deliver="pooled", nodes=1))
    assert result["config"]["short_vectors"] and not result["config"]["owner_bags"]


@pytest.mark.thorough
@HALVES
@pytest.mark.parametrize("model", [POOLED, ODD, SHORT], ids=["even", "odd", "short"])
def test_nics_convert_on_any_number_of_nodes(tmp_path, wire, model):
    for given in ({}, {"pool": "owner"}, {"pool": [0, 3]}):
        results = [_equal(_options(tmp_path, wire, "owner_bags=64", model=model, deliver="pooled",
                                   nodes=nodes, **given)) for nodes in (1, 3)]
        assert len({result["predictions_sha256"] for result in results}) == 1


@pytest.mark.thorough
@HALVES
@pytest.mark.parametrize("pool", ["requester", "owner"])
def test_nics_convert_and_the_network_loses_frames(tmp_path, wire, pool):
    result = _equal(_options(tmp_path, wire, *LINKED, model=POOLED, deliver="pooled", pool=pool,
                             nodes=3, faults="drop=0.05,corrupt=0.05,duplicate=0.02"))
    assert totals(result)["link_sender.repeated"] > 0


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [
    ("pooling=mean",), ("gpu_rings=true",), ("remote_cache=false", "local_cache=false")], ids=str)
def test_settings_of_nics_that_convert(tmp_path, settings):
    _equal(_options(tmp_path, "bfloat16", "owner_bags=64", *settings, model=ODD, deliver="pooled",
                    pool=[1, 2]))


def _even(tmp_path: Path, dimension: int, interaction: str) -> str:
    """Return the path of a model whose vectors all have ``dimension`` values."""
    tables = "".join(f"[[tables]]\nrows = {rows}\nbag = {list(bag)}\n"
                     for rows, bag in zip(MODEL.rows, MODEL.bags, strict=True))
    path = tmp_path / f"even{dimension}.toml"
    path.write_text(f"name = 'even'\ndimension = {dimension}\ndense = 3\n"
                    f"bottom = [8, {dimension}]\ntop = [5, 1]\n"
                    f"interaction = '{interaction}'\n{tables}")
    return str(path)


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("interaction", ["dot", "cat"])
@pytest.mark.parametrize("dimension", [64, 48, 16, 8])
def test_nics_convert_vectors_of_an_interaction(tmp_path, wire, interaction, dimension):
    """The dense vectors of hosts are float32: 4, 3 and 1 beats, and two vectors to a beat."""
    for given in ({"nodes": 1}, {"nodes": 3}, {"nodes": 3, "pool": "owner"}):
        options = _options(tmp_path, wire, "interaction=true", "owner_bags=64", deliver="pooled",
                           **given).with_fields(model=_even(tmp_path, dimension, interaction))
        _equal(options)
        assert compared(options) == 0


def _of(dimension: int) -> Model:
    return replace(EQUAL, dimensions=(dimension,) * 5)


@pytest.mark.thorough
def test_nics_convert_codes(tmp_path):
    result = _equal(_options(tmp_path, "int8", model=EQUAL, deliver="pooled", nodes=1))
    assert result["config"]["code_vectors"] and not result["config"]["owner_bags"]


@pytest.mark.slow
@CODES
@pytest.mark.parametrize("dimension", [64, 33, 16, 5])
def test_nics_convert_codes_on_any_number_of_nodes(tmp_path, wire, dimension):
    """Pairs in a beat of their own, or behind codes; vectors that share beats of packets."""
    for given in ({}, {"pool": "owner"}, {"pool": [0, 3]}):
        results = [_equal(_options(tmp_path, wire, "owner_bags=64", model=_of(dimension),
                                   deliver="pooled", nodes=nodes, **given)) for nodes in (1, 3)]
        assert len({result["predictions_sha256"] for result in results}) == 1


@pytest.mark.slow
@CODES
@pytest.mark.parametrize("pool", ["requester", "owner"])
def test_nics_convert_codes_and_the_network_loses_frames(tmp_path, wire, pool):
    result = _equal(_options(tmp_path, wire, *LINKED, model=EQUAL, deliver="pooled", pool=pool,
                             nodes=3, faults="drop=0.05,corrupt=0.05,duplicate=0.02"))
    assert totals(result)["link_sender.repeated"] > 0


@pytest.mark.slow
@CODES
@pytest.mark.parametrize(("dimension", "given"), [
    (64, {}), (40, {"nodes": 3, "pool": [1, 4]}), (8, {})], ids=str)
def test_the_model_has_the_cycles_of_nics_that_convert_codes(tmp_path, wire, dimension, given):
    assert compared(_options(tmp_path, wire, "owner_bags=64", model=_of(dimension),
                             deliver="pooled", **given)) == 0


@pytest.mark.thorough
def test_a_nic_that_converts_also_adds_float32(tmp_path):
    options = _options(tmp_path, "float32", "short_vectors=true", "owner_bags=64", model=POOLED,
                       deliver="pooled", nodes=3)
    assert faultless(run(options))["config"]["short_vectors"]


@pytest.mark.thorough
def test_another_format_in_the_nic_is_found(tmp_path, monkeypatch):
    given = build._value_values
    monkeypatch.setattr(build, "_value_values",
                        lambda *args: given(*args) | {"value_format": ValueFormat.BFLOAT16})
    result = run(_options(tmp_path, "float16", "owner_bags=64", model=POOLED, deliver="pooled"))
    assert not result["bit_identical"]


@pytest.mark.thorough
@pytest.mark.parametrize("given", [
    {"model": POOLED}, {"model": ODD, "nodes": 3, "pool": [1, 4]}, {"model": SHORT}], ids=str)
def test_the_model_has_the_cycles_of_nics_that_convert(tmp_path, given):
    assert compared(_options(tmp_path, "float16", "owner_bags=64", deliver="pooled", **given)) == 0


@pytest.mark.parametrize(("settings", "message"), [
    (("row_reads=true",), "row_reads must be false with wire float16, not True: "),
    (("deliver=unique", "row_reads=true"),
     "row_reads must be false with wire float16, not True: ")])
def test_nics_that_read_values(settings, message, capsys):
    with pytest.raises(ValueError, match=message):
        run(RunOptions.of(config="tiny", nodes=2, samples=8, wire="float16", settings=settings))
    given = [text for setting in settings for text in ("--set", setting)]
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--config", "tiny", "--wire", "float16", "--samples", "8", *given])
    error = capsys.readouterr().err.strip()
    assert message in error and "\n" not in error


@pytest.mark.parametrize(("wire", "settings", "message"), [
    ("int8", (), "wire must be float32, float16 or bfloat16 for tables of different dimensions "
                 "with deliver pooled, not 'int8': the NIC has one place for scales; or use --set "
                 "deliver=unique"),
    ("int8_row", ("code_vectors=false",), "code_vectors must be true with wire int8_row and "
                                          "deliver pooled, not False: the NIC converts 16-bit "
                                          "values only"),
    ("int8", ("short_vectors=false",), "short_vectors must be true with wire int8 and deliver "
                                       "pooled, not False: the NIC adds float32"),
    ("float16", ("training=true",), "deliver must be unique with wire float16, not 'pooled': NICs "
                                    "that train add float32 only; use"),
    ("float16", ("short_vectors=false",), "short_vectors must be true with wire float16 and "
                                          "deliver pooled, not False: the NIC adds float32"),
    ("float16", ("max_dimension=32",), "dimension must be at most 32 for config tiny, not 64")])
def test_vectors_that_no_nic_converts(tmp_path, wire, settings, message):
    with pytest.raises(ValueError, match=message):
        run(_options(tmp_path, wire, *settings, model=POOLED, deliver="pooled"))


def test_wrong_formats_and_sizes(tmp_path):
    with pytest.raises(ValueError, match=r"wire must be one of float32, .*int8, int8_row, not 'f'"):
        RunOptions.of(wire="f")
    wide = replace(MODEL, dimensions=(129, 64, 64, 64, 64))
    with pytest.raises(ValueError, match="dimension must be at most 128 for config tiny, not 129"):
        run(_options(tmp_path, "float16", model=wide))
    many = replace(MODEL, bags=((1, 1), (1, 1), (1, 1), (100, 100), (1, 1)))
    with pytest.raises(ValueError, match=r"slots of a share must be at most 65534 with wire "
                       r"float16, not \d+: use a smaller mini-batch or wire float32"):
        run(_options(tmp_path, "float16", "hold_vectors=256", model=many, nodes=1, samples=700,
                     mini_batch=700))
