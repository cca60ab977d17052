"""Faults of frames: their notation, in text and in files, and error messages."""

import json
from math import inf

import pytest

from rtl.formats import Opcode
from sim.job.fault_plan import FaultPlan
from sim.job.frame_faults import ANY, FOREVER, FaultKind, FrameFault, rule_of
from sim.job.options import RunOptions
from sim.training.options import TrainOptions

DROP, DUPLICATE, REORDER, CORRUPT, DELAY, DOWN = FaultKind


@pytest.mark.parametrize(("text", "faults"), [
    ("drop=1e-3", [FrameFault(DROP, rate=1e-3)]),
    ("drop-lookups=1@0>1", [FrameFault(DROP, 0, 1, Opcode.LOOKUPS, 1.0)]),
    ("duplicate=0.5@>2", [FrameFault(DUPLICATE, None, 2, rate=0.5)]),
    ("corrupt-STEPS=#3+7-9@1>", [FrameFault(CORRUPT, 1, None, Opcode.STEPS, 0, ((3, 3), (7, 9)))]),
    ("reorder=0.1", [FrameFault(REORDER, rate=0.1, time_us=2)]),
    ("reorder=0.1:300ns", [FrameFault(REORDER, rate=0.1, time_us=0.3)]),
    ("delay=#1:5us@2", [FrameFault(DELAY, 2, None, None, 0, ((1, 1),), 5),
                        FrameFault(DELAY, None, 2, None, 0, ((1, 1),), 5)]),
    ("down=20us:1ms@0<>1", [FrameFault(DOWN, 0, 1, start_us=20, length_us=1000),
                            FrameFault(DOWN, 1, 0, start_us=20, length_us=1000)]),
    ("down=0us:", [FrameFault(DOWN)]),
])
def test_parsing(text, faults):
    plan = FaultPlan.of(text, 3, seed=5)
    assert list(plan.frames) == faults
    assert (plan.given, plan.seed, plan.silences) == ((text,), 5, ())


def test_all_in_one():
    plan = FaultPlan.of("drop=0.5, seed=9,silent-gpu=1us:1us@1", 2, seed=5)
    assert plan.given == ("drop=0.5", "silent-gpu=1us:1us@1")
    assert (plan.seed, len(plan.frames), len(plan.silences)) == (9, 1, 1)


@pytest.mark.parametrize(("text", "nodes", "message"), [
    ("drop", 4, "faults must be silent-PART=START:LENGTH.* KIND being one of drop, duplicate"),
    ("drop=1.5", 4, "rate of drop must be a number between 0 and 1, .* not '1.5'"),
    ("drop=nan", 4, "rate of drop must be a number between 0 and 1"),
    ("drop=-1e-3", 4, "rate of drop must be"),
    ("drop=", 4, "rate of drop must be"),
    ("drop=#0", 4, "frames of drop must count from 1, upwards, not '0'"),
    ("drop=#9-7", 4, "frames of drop must count from 1, upwards, not '9-7'"),
    ("drop=#", 4, "frames of drop must be numbers and spans"),
    ("drop=#1+", 4, "frames of drop must be numbers and spans"),
    ("drop=0.1:2us", 4, "time of drop must be left out, not '2us'"),
    ("drop-queries=1", 4, "opcode of drop must be one of lookups, vectors, partials, steps"),
    ("drop=1@4>0", 4, "node of drop must be between 0 and 3, not '4'"),
    ("drop=1@x", 4, "node of drop must be between 0 and 3, not 'x'"),
    ("drop=1@1>1", 4, "link of drop must be such as 0>1, 0>, >1, 0<>1 or 0, not '1>1'"),
    ("drop=1@", 4, "link of drop must be"),
    ("drop=1", 1, "drop must go with at least 2 nodes, not 1"),
    ("delay=1", 4, "time of delay must be given"),
    ("delay=1:0us", 4, "time of delay must be above 0 us and at most 1 s, not '0us'"),
    ("delay=1:2s", 4, "time of delay must be above 0 us and at most 1 s, not '2s'"),
    ("reorder=1:5", 4, "reorder: time must be a string with a number and a unit"),
    ("down=5us", 4, "down must be START:LENGTH"),
    ("down=5us:0us", 4, "length of down must be above 0 us"),
    ("seed=-1", 4, "seed of faults must be between 0"),
])
def test_mistakes(text, nodes, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        RunOptions.of(nodes=nodes, faults=text)
    assert "\n" not in str(error.value)


def test_rules_are_whole_numbers():
    plan = FaultPlan.of("drop=0.25,drop=1@1>0,reorder=#2:1us,down=4us:8us@0>1,down=4us:", 2)
    rules = [rule_of(fault, 1000) for fault in plan.frames]
    assert [rule.threshold for rule in rules[:2]] == [1 << 62, FOREVER]
    assert rules[0][1:4] == (ANY, ANY, ANY) and rules[1][1:4] == (1, 0, ANY)
    assert (rules[2].cycles, rules[2].frames) == (250, ((2, 2),))
    assert rules[3][6:8] == (2000, 4000) and rules[4][6:8] == (2000, FOREVER)
    assert plan.frames[4].length_us == inf


def test_a_file_of_faults(tmp_path):
    path = tmp_path / "faults.toml"
    path.write_text('seed = 3\nfaults = [\n  "drop=#1@0>1",\n  "silent-gpu=1us:1us",\n]\n')
    plan = FaultPlan.of(str(path), 2, seed=5)
    assert (plan.seed, plan.given) == (3, ("drop=#1@0>1", "silent-gpu=1us:1us"))
    assert plan.frames == (FrameFault(DROP, 0, 1, frames=((1, 1),)),)


def test_the_json_of_a_run_repeats_its_faults(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"faults": {"given": ["drop=0.5@0>1"], "seed": 8, "injected": []}}))
    assert FaultPlan.of(str(path), 2, 5) == FaultPlan.of("drop=0.5@0>1,seed=8", 2, 5)


@pytest.mark.parametrize(("name", "text", "message"), [
    ("f.toml", 'faults = ["drop=1",\n "drop=2"]', r"f.toml: faults\[1\]: rate of drop must"),
    ("f.toml", 'fault = ["drop=1"]', "f.toml: no such field: fault"),
    ("f.toml", 'faults = []\nseed = -1', "f.toml: seed must be between 0"),
    ("f.json", "{", "f.json: not JSON"),
    ("f.json", "[]", "f.json: faults.given must be a list of strings"),
    ("f.json", '{"faults": null}', "f.json: faults.given must be a list of strings"),
    ("f.json", '{"faults": {"given": ["drop=2"], "seed": 1}}', "f.json: rate of drop must be"),
    ("f.json", '{"faults": {"given": ["drop=1"]}}', "f.json: faults.seed must be between 0"),
    ("f.json", None, "f.json: No such file"),
])
def test_mistakes_in_files_name_the_file(tmp_path, name, text, message):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        RunOptions.of(nodes=2, faults=str(path))
    assert "\n" not in str(error.value)


def test_no_output_overwrites_the_file_of_faults(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"faults": {"given": ["drop=0.5"], "seed": 8}}))
    with pytest.raises(ValueError, match="json"):
        RunOptions.of(nodes=2, faults=str(path), json=str(path)).check_files()


def test_models_have_no_frames_to_lose():
    with pytest.raises(ValueError, match="faults of frames must go with fidelity rtl"):
        RunOptions.of(nodes=2, faults="drop=1e-3", fidelity="model")
    with pytest.raises(ValueError, match="faults must be left out with --reference"):
        TrainOptions.of(nodes=2, faults="drop=1e-3", reference=True)
