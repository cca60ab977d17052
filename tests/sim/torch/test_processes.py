"""Processes that ``torchrun`` starts are the nodes of a cluster, with a common report."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))

from tests.sim.shown import messages
from tests.sim.torch.sharded import ROWS, SAMPLES

SHARDED = Path(__file__).with_name("sharded.py")
LOOKUPS = SAMPLES * len(ROWS)


def torchrun(*arguments: str, processes: int = 2) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone",
         f"--nproc-per-node={processes}", *arguments], capture_output=True, text=True,
        timeout=900)  # a first run compiles NICs


def losses(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line[:1].isdecimal()]


@pytest.mark.thorough
@pytest.mark.parametrize(("keys", "what"), [(10, "look"), (1, "train")])
@pytest.mark.few(1)
def test_tables_of_processes_are_tables_of_nodes(tmp_path, keys, what):
    arguments = ["6", str(keys), what]
    plain = torchrun(str(SHARDED), "gloo", *arguments)
    done = torchrun("-m", "sim", "torch", "--json", str(tmp_path / "out.json"),
                    str(SHARDED), "embernic", *arguments)
    assert done.returncode == 0, done.stderr[-2000:]
    assert losses(done.stdout) == losses(plain.stdout) and len(losses(plain.stdout)) == 6
    assert done.stdout.count("Embedding bags of") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["options"]["nodes"] == 2
    assert [(table["rows"], table["node"]) for table in result["tables"]] == [
        (50, 0), (300, 0), (9, 0), (7, 1), (20, 1)]
    assert [(each["rank"], each["tables"], each["lookups"]) for each in result["processes"]] == [
        (0, 3, 6 * SAMPLES * keys * 3), (1, 2, 6 * SAMPLES * keys * 2)]
    kind = "training" if what == "train" else "inference"
    sums = result["mini_batches"][kind]
    assert list(result["mini_batches"]) == [kind]
    assert (sums["count"], sums["samples"], sums["lookups"]) == (6, 6 * SAMPLES, 6 * keys * LOOKUPS)
    assert len(result["systems"][kind]["rows"]) == 4
    assert result["systems"][kind]["samples"] == SAMPLES
    assert result["gradients"]["bags"] == (6 * LOOKUPS if what == "train" else 0)
    assert result["not_caught"] == []


@pytest.mark.thorough
@pytest.mark.parametrize(("keys", "what", "processes"), [
    (3, "train", 3), (3, "look", 2), (1, "train", 2)])
@pytest.mark.few(1)
def test_vectors_of_processes_come_from_the_nics_of_one(tmp_path, keys, what, processes):
    arguments = ["4", str(keys), what]
    plain = torchrun(str(SHARDED), "gloo", *arguments, processes=processes)
    done = torchrun("-m", "sim", "torch", "--fidelity", "rtl", "--config", "tiny", "--threads", "1",
                    "--json", str(tmp_path / "out.json"), str(SHARDED), "embernic", *arguments,
                    processes=processes)
    assert done.returncode == 0, done.stderr[-2000:]
    assert losses(done.stdout) == losses(plain.stdout) and len(losses(plain.stdout)) == 4
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["options"]["nodes"] == processes
    # The bags of all processes form a mini-batch of the NICs.
    assert result["values"]["results"] == {"equal": 4 * SAMPLES, "different": 0}
    assert len(result["nics"]["latencies_us"]) == 4
    assert result["nics"]["counts"]["network.packets"] > 0
    check_hits(result, 4)


def check_hits(result: dict, count: int) -> None:
    """Check the sums and the number of local cache counts."""
    assert len(result["steps"]) == count
    for name in ("hits", "accesses"):
        assert sum(step[f"local_cache_{name}"] for step in result["steps"]) == (
            result["nics"]["counts"][f"local_cache.{name}"])


@pytest.mark.thorough
@pytest.mark.few(1)
def test_rows_of_processes_are_written_by_the_nics_of_one(tmp_path):
    """Losses and rows with RTL equal those with the numerics."""
    shown, results = [], []
    for fidelity in ("model", "rtl"):
        out = tmp_path / f"{fidelity}.json"
        done = torchrun("-m", "sim", "torch", "--optimizer-on", "nic", "--fidelity", fidelity,
                        "--config", "tiny", "--threads", "1", "--json", str(out), str(SHARDED),
                        "embernic", "4", "3", "train")
        assert done.returncode == 0, done.stderr[-2000:]
        shown.append(losses(done.stdout))
        results.append(json.loads(out.read_text()))
    assert shown[0] == shown[1] and len(shown[0]) == 4
    model, rtl = results
    assert rtl["gradients"]["nic"] == model["gradients"]["nic"]
    assert rtl["gradients"]["nic"]["rows"] > 0 and rtl["gradients"]["nic"]["different"] == 0
    assert rtl["values"]["results"] == {"equal": 4 * SAMPLES, "different": 0}
    # The updates of all processes are merged, and the caches of NICs that write stay on.
    assert len(rtl["nics"]["updates_us"]) == 4 and rtl["nics"]["uncached"] == 0
    check_hits(rtl, 4)


COPIES = """
import torch
from torch import distributed
distributed.init_process_group("embernic")
bag, top = torch.nn.EmbeddingBag(100, 16, mode="sum"), torch.nn.Linear(16, 1)
top = torch.nn.parallel.DistributedDataParallel(top)
for step in range(2):
    top(bag(torch.arange(8) + step, torch.arange(8))).mean().backward()
got = torch.empty(4)
distributed.all_to_all_single(got, torch.arange(4.0))
distributed.destroy_process_group()
"""


@pytest.mark.thorough
def test_processes_with_copies_of_tables_have_samples_of_their_own(tmp_path):
    script = tmp_path / "copies.py"
    script.write_text(COPIES)
    done = torchrun("-m", "sim", "torch", "--nodes", "2", "--json", str(tmp_path / "out.json"),
                    str(script))
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads((tmp_path / "out.json").read_text())
    sums = result["mini_batches"]["training"]
    assert (sums["count"], sums["samples"], sums["lookups"]) == (2, 32, 32)
    assert [table["node"] for table in result["tables"]] == [None]
    assert any("copies of the same tables" in note for note in result["notes"])
    counts = {each["name"]: each for each in result["collectives"]}
    assert counts["alltoall_base"] == {"name": "alltoall_base", "count": 2, "bytes": 32}
    # The gradients of 17 parameters, of two steps and processes.
    assert counts["allreduce"]["count"] >= 4 and counts["allreduce"]["bytes"] >= 4 * 4 * 17


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize(("options", "what", "said"), [
    ([], "0:killed", "process 0 of 2 ended before the program did"),
    (["--nodes", "3"], "look", "nodes must be 2, the processes of the program, not 3"),
    (["--system", "both"], "look",
     "system must be one of en, fs, bl-tuned, bl-paper, not 'both'")])
def test_what_ends_one_process_ends_all_with_one_line(tmp_path, options, what, said):
    done = torchrun("-m", "sim", "torch", *options, "--json", str(tmp_path / "out.json"),
                    str(SHARDED), "embernic", "4", "1", what)
    assert done.returncode != 0
    complaints = messages(done.stderr)
    assert len(complaints) == 1 and complaints[0].endswith(said)
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_the_first_process_prints_a_mistake_though_it_starts_last(tmp_path):
    done = torchrun("--no-python", "sh", "-c", 'test $RANK != 0 || sleep 4; exec "$@"', "sh",
                    sys.executable, "-m", "sim", "torch", "--system", "both", str(SHARDED),
                    "embernic", "4", "1", "look")
    assert done.returncode != 0
    assert messages(done.stderr) == ["sim: system must be one of en, fs, bl-tuned, bl-paper, not "
                                     "'both'"]


@pytest.mark.thorough
def test_processes_on_several_machines_are_refused(tmp_path):
    done = torchrun("--no-python", "env", "LOCAL_WORLD_SIZE=1", sys.executable, "-m", "sim",
                    "torch", "--json", str(tmp_path / "out.json"), str(SHARDED), "embernic", "4",
                    "1", "look")
    complaints = [line for line in done.stderr.splitlines() if line.startswith("sim: ")]
    assert complaints == ["sim: processes must run on the same machine, but 2 processes run on "
                          "several: start torchrun on a single machine"]
    assert done.returncode != 0 and not list(tmp_path.iterdir())


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize(("options", "what", "said", "steps"), [
    ([], "1:killed", "process 1 of 2 ended before the program did", [2, 1]),
    ([], "0:raises", f"{SHARDED} ended with RuntimeError: of mine", [2, 2]),
    ([], "1:raises", f"{SHARDED} ended with RuntimeError: of mine", [2, 2]),
    (["--fidelity", "rtl", "--config", "tiny", "--threads", "1"], "1:raises",
     f"{SHARDED} ended with RuntimeError: of mine", [2, 2])])
def test_a_program_that_fails_has_a_report_of_what_each_process_did(
        tmp_path, options, what, said, steps):
    out, page = tmp_path / "out.json", tmp_path / "page"
    done = torchrun("-m", "sim", "torch", *options, "--json", str(out), "--report", str(page),
                    str(SHARDED), "embernic", "4", "1", what)
    assert done.returncode != 0
    complaints = messages(done.stderr)
    assert len(complaints) == 1 and complaints[0].endswith(said)
    result = json.loads(out.read_text())
    assert result["ended"] == said and said in (page / "index.html").read_text()
    assert done.stdout.count("Embedding bags of") == 1 and said in " ".join(done.stdout.split())
    found = {each["rank"]: each["lookups"] for each in result["processes"]}
    # Current mini-batches count if the process has all their vectors.
    for rank, (tables, count) in enumerate(zip((3, 2), steps)):
        assert found[rank] in (count * tables * SAMPLES, (count + 1) * tables * SAMPLES)
    # The counts of a lost process are kept.
    silent = "process 1 ended without a report"
    assert any(note.startswith(silent) for note in result["notes"]) == (what == "1:killed")
    assert len(result["steps"]) in (2, 3)
