"""NICs with tables of different dimensions and poolings: predictions equal a plain reference."""

import numpy as np
import pytest

from host.dlrm.dlrm import pooled_reference
from sim import api
from sim.host_cpp.check import pooled_compiled
from sim.job.options import RunOptions
from sim.run.run import Run
from tests.host.dlrm.mixed import Plain, batches, mixed_model, toml_of
from tests.sim.run.results import faultless

SETTINGS = ((), ("deliver=unique", "completions=true"), ("row_reads=true",),
            ("gpu_rings=true", "local_cache=false"))


@pytest.mark.few(4, "thorough")
@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_predictions_are_those_of_tables_without_padding(tmp_path, seed, nodes):
    model = mixed_model(seed)
    path = tmp_path / "mixed.toml"
    path.write_text(toml_of(model))
    job = Run(RunOptions.of(config="tiny", model=str(path), nodes=nodes, samples=45, mini_batch=15,
                            threads=1, settings=SETTINGS[(seed + nodes) % 4]))
    seen: list[np.ndarray] = []
    result = faultless(job.execute(predictions=seen.append))
    plain = Plain(model)
    assert np.concatenate(seen).tobytes() == np.concatenate(
        [plain.predictions(part) for part in batches(model, 3, 15)]).tobytes()
    assert result["notes"] == [model.padding] and f"to {model.width}" in result["notes"][0]
    assert result["model"]["dimensions"] == list(model.dimensions)


@pytest.mark.parametrize("seed", range(3))
def test_compiled_sums_are_those_of_numpy(seed):
    model = mixed_model(seed)
    (samples,) = batches(model, 1, 40)
    assert pooled_compiled(samples, model, 3).tobytes() == pooled_reference(
        samples, model, 3).tobytes()


def test_fidelity_fast_moves_the_same_bytes(tmp_path):
    path = tmp_path / "mixed.toml"
    path.write_text(toml_of(mixed_model(0)))
    found = [api.run(config="tiny", model=path, nodes=2, samples=32, mini_batch=16, threads=1,
                     fidelity=fidelity) for fidelity in ("rtl", "fast")]
    assert found[0]["network"]["bytes"] == found[1]["network"]["bytes"] > 0
    assert found[0]["pcie"] == found[1]["pcie"] and found[1]["notes"]


def test_nics_do_not_compute_the_interaction(tmp_path):
    path = tmp_path / "mixed.toml"
    path.write_text(toml_of(mixed_model(0)))
    with pytest.raises(ValueError, match=r"^interaction must be false for tables of different "
                                         "dimensions or poolings, not True"):
        api.run(config="tiny", model=path, samples=8, settings=["interaction=true"])


def test_a_setting_replaces_every_pooling(tmp_path):
    model = mixed_model(4)
    path = tmp_path / "mixed.toml"
    shas = []
    for text, settings in ((toml_of(model).replace('"sum"', '"mean"'), []),
                           (toml_of(model), ["pooling=mean"]), (toml_of(model), [])):
        path.write_text(text)
        shas.append(api.run(config="tiny", model=path, samples=16, mini_batch=8, threads=1,
                            settings=settings)["predictions_sha256"])
    assert shas[0] == shas[1] != shas[2]
