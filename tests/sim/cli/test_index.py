"""``--index exact`` in every command that reads a Criteo file, and its errors elsewhere."""

import json

import pytest

from sim import api
from sim.cli.main import main
from tests.sim.inputs import movielens

COMMANDS = [
    ["run", "--fidelity", "fast", "--mini-batch", "16"],
    ["train", "--reference", "--mini-batch", "16"],
    ["batching", "--mini-batch", "8", "--window", "32"],
    ["hitrate", "--sizes", "64"],
    ["plan"],
]


@pytest.fixture
def train_txt(tmp_path):
    """Write samples of two different categories in each table."""
    path = tmp_path / "train.txt"
    path.write_text("".join("\t".join([str(number % 2), *["3"] * 13, *(
        "" if number % 5 else "0a1b2c3d" for _ in range(26))]) + "\n" for number in range(64)))
    return path


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_commands_read_a_file_that_is_indexed_exactly(train_txt, tmp_path, command):
    found = []
    for index in ("hash", "exact"):
        out = tmp_path / f"{index}.json"
        with pytest.raises(SystemExit) as end:
            main([*command, "--data", str(train_txt), "--index", index, "--json", str(out)])
        assert end.value.code == 0
        found.append(json.loads(out.read_text()))
    if command[0] != "batching":
        hashed, exact = ((result.get("options") or result)["format"] for result in found)
        assert hashed in ("criteo", None) and exact == "criteo-exact"


def test_rows_are_the_first_of_their_tables(train_txt):
    found = api.train(data=train_txt, index="exact", config="kaggle", nodes=2, mini_batch=16,
                      reference=True)
    named = api.train(data=train_txt, format="criteo-exact", config="kaggle", nodes=2,
                      mini_batch=16, reference=True)
    assert found["loss"] == named["loss"]


@pytest.mark.parametrize("command", [*COMMANDS, ["serve"], ["reproduce", "fig08", "--output", "o"]],
                         ids=lambda command: command[0])
def test_an_index_that_cannot_be(tmp_path, capsys, command):
    ratings = str(movielens(tmp_path / "ratings.csv", 4))
    for more, said in (
            (["--index", "sorted"], "index must be one of hash, exact, not 'sorted'"),
            (["--index", "exact"], "index must go with data, not 'exact' alone"),
            (["--index", "exact", "--data", ratings],
             "index must be hash with format movielens, not 'exact'")):
        with pytest.raises(SystemExit) as end:
            main([*command, *more])
        assert end.value.code == 2
        assert capsys.readouterr().err == f"sim: {said}\n"
