import pytest

from host.data.generator import generate
from host.data.similarity_report import TARGETS, compare, describe, format_report, main
from host.model import MODELS


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("seed", [0, 1])
def test_generated_samples_reproduce_the_measured_figures(name, seed):
    result = compare(name, seed)
    deviations = {row["name"]: row["deviation"] for row in result["rows"]}
    assert abs(deviations.pop("greedy")) <= 0.05, result
    assert result["greedy_within_5_points"]
    assert all(abs(value) <= 0.08 for value in deviations.values()), result


def test_report_names_every_figure():
    result = compare("avazu", 2)
    lines = format_report(result).splitlines()
    assert lines[0] == "generated samples like avazu (seed 2):"
    assert [line.split()[0] for line in lines[1:]] == [row["name"] for row in result["rows"]]
    assert lines[-1].endswith("points") and "0.389" in lines[-1]
    with pytest.raises(ValueError, match="name must be one of kaggle, avazu, not 'x'"):
        compare("x")


def test_few_samples_can_be_described():
    got = describe(generate(MODELS["kaggle"], 50, 0))
    assert got.samples == 50 and 1 <= got.reuse128 <= 50 and got.greedy == 0


def test_command(capsys, monkeypatch):
    assert main(["avazu", "1"]) == 0
    assert capsys.readouterr().out.startswith("generated samples like avazu (seed 1):")
    assert main(["nothing"]) == 2 and main(["avazu", "x"]) == 2
    assert capsys.readouterr().err.count("\n") == 2
    monkeypatch.setattr("host.data.similarity_report.generate", lambda model, count, seed: generate(
        MODELS["kaggle"], 300, seed))
    assert main(["kaggle"]) == 1
