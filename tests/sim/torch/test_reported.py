"""The report of a program is written however the program ends."""

import json

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
import torch

from sim import api
from sim.cli.main import main
from sim.torch.catching import session
from sim.torch.report import result
from sim.torch.values.nics import LookupNics, NicsError

ONE = """
import torch
bag = torch.nn.EmbeddingBag(100, 16, mode="sum")
optimizer = torch.optim.Adam(bag.parameters())
out = bag(torch.arange(8), torch.arange(8))
print(out.shape)
"""
"""A script with a single mini-batch, which is too few to time a system."""

BAG = torch.nn.EmbeddingBag(10, 4, mode="sum")
KEYS = torch.arange(4)


def ended(tmp_path, text: str, *options: str) -> tuple[int | str | None, dict]:
    """Return the exit status of a script, and its report."""
    path, out = tmp_path / "script.py", tmp_path / "out.json"
    path.write_text(text)
    with pytest.raises(SystemExit) as end:
        main(["torch", "--nodes", "2", "--config", "tiny", "--json", str(out), *options, str(path)])
    return end.value.code, json.loads(out.read_text())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_script_without_a_table_for_a_nic_runs(tmp_path, dtype):
    status, found = ended(tmp_path, ONE.replace("(100, 16,", f"(100, 16, dtype=torch.{dtype},"))
    assert status == 0 and found["tables"] == [] and found["systems"] == {}
    assert found["not_caught"] == [{
        "place": f"{tmp_path / 'script.py'}:5", "count": 1,
        "what": f"aten::_embedding_bag is not caught: its rows are {dtype}, and the NIC's are "
                f"float32"}]


@pytest.mark.parametrize(("kind", "text"), [
    ("RuntimeError", "bag(torch.tensor([100]), torch.arange(1))"),
    ("ZeroDivisionError", "1 / 0")])
def test_an_exception_of_the_script(tmp_path, capsys, kind, text):
    status, found = ended(tmp_path, ONE + text)
    assert status == 1 and len(found["steps"]) == 1
    assert found["ended"].startswith(f"{tmp_path / 'script.py'} ended with {kind}: ")
    assert kind in capsys.readouterr().err


def test_a_script_that_catches_the_exception_continues(tmp_path, capsys):
    status, found = ended(tmp_path, ONE + """
try:
    bag(torch.tensor([100]), torch.arange(1))
except RuntimeError as error:
    print("caught")
print(bag(torch.tensor([1, 1, 1]), torch.arange(3)).shape)
""", "--fidelity", "rtl")
    assert status == 0 and "caught\ntorch.Size([3, 16])\n" in capsys.readouterr().out
    assert [step["lookups"] for step in found["steps"]] == [8, 3] and found["ended"] is None


def test_a_refused_optimizer(tmp_path, capsys):
    status, found = ended(tmp_path, ONE + "out.sum().backward()\noptimizer.step()",
                          "--optimizer-on", "nic")
    assert status == 2 and found["tables"] and "SGD" in found["ended"]
    assert capsys.readouterr().err.startswith(f"sim: {tmp_path / 'script.py'}:8: ")


def test_nics_that_do_not_answer(tmp_path, monkeypatch):
    def silent(*_):
        raise NicsError("no answer")

    monkeypatch.setattr(LookupNics, "look_up", silent)
    status, found = ended(tmp_path, ONE + "out + 1", "--fidelity", "rtl")
    assert status == 1 and found["ended"] == "NicsError: no answer"


@pytest.mark.parametrize(("module", "name"), [(session, "pooled"), (result, "times_of")])
def test_a_fault_of_this_package(tmp_path, monkeypatch, module, name):
    def faulty(*_):
        raise AssertionError("a fault")

    path, out = tmp_path / "script.py", tmp_path / "out.json"
    path.write_text(ONE + "\nprint(bag(torch.arange(8), torch.arange(8)).shape)")
    monkeypatch.setattr(module, name, faulty)
    with pytest.raises(AssertionError, match="a fault"):
        api.torch(path, nodes=2, json=out)
    found = json.loads(out.read_text())
    assert found["ended"] == "AssertionError: a fault" and found["tables"]
    assert len(found["steps"]) == (name == "times_of")


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_a_context_that_an_exception_leaves(error):
    context = api.attach(nodes=2)
    with pytest.raises(error), context as program:
        for _ in range(2):
            BAG(KEYS, KEYS).sum()
        raise error("left")
    assert program.result["ended"] == f"{error.__name__}: left"
    assert len(program.result["steps"]) == 1  # without the current mini-batch
