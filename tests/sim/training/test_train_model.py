"""``sim train --reference``: the reference run from the command line, with its files."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.metrics import accuracy, auc
from host.dlrm.optimizer import Optimizer
from host.dlrm.trainer import reference_trainer, weights_sha256
from host.errors import InputError
from host.model import Model
from host.samples import rechunk
from sim.cli.main import main
from sim.training.options import TrainOptions
from sim.training.train import Training, train
from tests.sim.inputs import movielens
from tests.sim.interacting import write_model

MODEL = Model((50, 3, 4000, 70), 16, 3, (8, 16), (4, 1), "small",
              ((1, 3), (1, 1), (0, 5), (2, 2)))
SAMPLES, BATCH = 150, 32


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return write_model(tmp_path_factory.mktemp("model") / "small.toml", MODEL)


def options(path, **changes) -> TrainOptions:
    return TrainOptions.of(**{
        "fidelity": "model", "engine": "pysim", "config": "tiny", "model": path, "nodes": 4,
        "samples": SAMPLES, "mini_batch": BATCH, "interval": 2, **changes})


def arguments(path, *more: object) -> list[str]:
    return ["train", *map(str, (
        "--reference", "--engine", "pysim", "--config", "tiny", "--model", path,
        "--samples", SAMPLES, "--mini-batch", BATCH, "--interval", 2, *more))]


def reference(optimizer=None, nodes=1, partials="exact", epochs=1):
    trainer = reference_trainer(MODEL, 1, optimizer, nodes, partials)
    parts = [part for _ in range(epochs)
             for part in rechunk(generate(MODEL, SAMPLES, 1), BATCH)]
    return parts, [trainer.step(part) for part in parts], weights_sha256(
        trainer.dense, trainer.embeddings.rows)


@pytest.mark.parametrize(("given", "expected"), [
    ({}, {}),
    ({"optimizer": "rowwise-adagrad", "learning_rate": 0.02, "epsilon": 1e-6, "epochs": 2},
     {"optimizer": Optimizer("rowwise-adagrad", 0.02, 1e-6), "epochs": 2}),
    ({"settings": ("gradient_partials=rounded",)}, {"nodes": 4, "partials": "rounded"}),
    ({"settings": ("gradient_partials=rounded", "local_reduction=false")}, {}),
], ids=["sgd", "adagrad", "rounded", "single"])
def test_it_is_the_reference(path, given, expected):
    parts, done, weights = reference(**expected)
    result = train(options(path, **given))
    assert result["loss"] == [step.loss for step in done]
    assert result["weights_sha256"] == weights
    assert result["complete"] and result["steps"] == len(parts)
    assert result["samples"] == SAMPLES * result["epochs"]
    assert result["lookups"] == sum(len(part.rows) for part in parts)
    assert result["bit_identical"] is result["samples_per_second"] is None


def test_intervals_end_with_epochs(path):
    parts, done, _ = reference(epochs=2)
    seen = []
    result = train(options(path, epochs=2), lambda *news: seen.append(news))
    rows = result["intervals"]
    assert [(row["epoch"], row["first_step"], row["steps"], row["samples"]) for row in rows] == [
        (0, 0, 2, 64), (0, 2, 2, 64), (0, 4, 1, 22), (1, 5, 2, 64), (1, 7, 2, 64), (1, 9, 1, 22)]
    assert [interval for *_, interval in seen if interval] == rows
    for row in rows:
        steps = slice(row["first_step"], row["first_step"] + row["steps"])
        labels = np.concatenate([part.labels for part in parts[steps]])
        predictions = np.concatenate([step.predictions for step in done[steps]])
        assert row["accuracy"] == accuracy(predictions, labels)
        assert row["auc"] == auc(predictions, labels)
        assert row["loss"] == pytest.approx(np.average(
            [step.loss for step in done[steps]], weights=[len(part) for part in parts[steps]]))


def test_json_has_the_fields_of_a_run(path, tmp_path):
    with pytest.raises(SystemExit) as end:
        main(arguments(path, "--json", tmp_path / "t.json"))
    assert end.value.code == 0
    result = json.loads((tmp_path / "t.json").read_text())
    assert not {"config", "samples", "lookups", "nodes", "engine", "fidelity", "cycles",
                "simulated_seconds", "wall_seconds", "node_cycles_per_second", "bit_identical",
                "local_cache", "remote_cache", "dedupe", "network", "latency_us", "phases_us",
                "predictions_sha256", "loss", "samples_per_second", "update_misses",
                "weights_sha256"} - set(result)


@pytest.mark.parametrize("optimizer", ["sgd", "rowwise-adagrad"])
def test_stopped_and_continued(path, tmp_path, optimizer):
    given = {"optimizer": optimizer, "epochs": 2, "checkpoint": str(tmp_path / "c.npz")}
    whole = train(options(path, optimizer=optimizer, epochs=2))
    looks = iter([None, None, None, "SIGINT"])
    first = Training(options(path, **given)).execute(stop=lambda: next(looks))
    assert not first["complete"] and first["interrupted"] == "SIGINT" and first["steps"] == 3
    second = train(options(path, **given))
    assert second["complete"] and second["first_step"] == 3
    assert first["loss"] + second["loss"] == whole["loss"]
    assert second["weights_sha256"] == whole["weights_sha256"]
    with pytest.raises(ValueError, match=r"epochs must be more than 2 .*, which has 10 steps"):
        Training(options(path, **given))
    more = train(options(path, **given | {"epochs": 3}))
    assert more["first_step"] == 10 and more["steps"] == 5
    # Exact sums do not depend on the number of nodes.
    assert train(options(path, **given | {"epochs": 4, "nodes": 2}))["steps"] == 5


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_real_signal(path, tmp_path):
    rest = ["--interval", 1, "--samples", 60_000, "--checkpoint", tmp_path / "c.npz"]
    command = [sys.executable, "-m", "sim", *arguments(path, *rest)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        for _ in range(3):
            assert process.stdout.readline().startswith("epoch 1, step ")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    found = re.search(r"stopped by SIGINT after (\d+) steps, which .* holds", said)
    assert found is not None and said.count("\n") == 1
    steps = int(found[1])
    assert steps < 60_000 // BATCH
    # The same result as after a normal end.
    looks = iter([None] * steps)
    alone = Training(options(path, samples=60_000)).execute(
        stop=lambda: next(looks, "SIGINT"))
    setup = Training(options(path, samples=60_000, checkpoint=str(tmp_path / "c.npz")))
    assert setup.first_step == steps
    assert weights_sha256(setup.dense, setup.trainer.embeddings.rows) == alone["weights_sha256"]


def test_a_run_that_diverges_is_valid_json(path, tmp_path):
    with pytest.raises(SystemExit) as end:
        main(arguments(path, "--learning-rate", "1e30", "--json", tmp_path / "t.json"))
    assert end.value.code == 0

    def no_number(name):
        raise AssertionError(f"{name} is no JSON")

    result = json.loads((tmp_path / "t.json").read_text(), parse_constant=no_number)
    assert result["loss"][-1] is None and result["intervals"][-1]["loss"] is None


def test_checkpoints_of_other_runs_are_refused(path, tmp_path):
    checkpoint = str(tmp_path / "c.npz")
    rounded = {"settings": ("gradient_partials=rounded",), "checkpoint": checkpoint}
    train(options(path, **rounded))
    for changes, said in (({"mini_batch": 16}, "run.mini_batch is 32, not 16 as in this run"),
                          ({"samples": 50}, "run.samples is 150, not 50"),
                          ({"nodes": 2}, "run.nodes is 4, not 2"),
                          ({"settings": ()}, "run.gradient_partials is 'rounded', not 'exact'"),
                          ({"seed": 2}, "seed is 1, not 2"),
                          ({"learning_rate": 0.2}, "optimizer.learning_rate is 0.1, not 0.2")):
        with pytest.raises(ValueError, match=re.escape(f"{checkpoint}: {said}")):
            Training(options(path, **rounded | changes))


def _halted(path, checkpoint, **changes):
    """Train two steps, then stop."""
    looks = iter([None, None])
    Training(options(path, checkpoint=checkpoint, **changes)).execute(
        stop=lambda: next(looks, "SIGINT"))


def test_data_that_changed_under_the_same_name_are_refused(tmp_path):
    """Changed samples that were already learned, and a changed number of samples."""
    data, checkpoint = tmp_path / "data.txt", str(tmp_path / "c.npz")
    lines = [f"0:{n % 7} 1:{n % 5}\n" for n in range(150)]
    given = {"data": str(data), "model": None, "samples": None, "format": "trace"}

    def write(lines):
        data.write_text("".join(lines))

    write(lines)
    _halted(data, checkpoint, **given)
    write([*lines[:20], "0:1 1:4\n", *lines[21:]])
    with pytest.raises(ValueError, match=re.escape(
            f"{checkpoint}: was made from other samples than the first 2 mini-batches")):
        Training(options(data, checkpoint=checkpoint, **given))
    write([*lines, "0:1 1:4\n"])
    with pytest.raises(ValueError, match=re.escape("run.bytes is [1200], not [1208] as in this")):
        Training(options(data, checkpoint=checkpoint, **given))
    write(lines)
    assert Training(options(data, checkpoint=checkpoint, **given)).first_step == 2


def test_a_training_that_diverges_keeps_the_checkpoint_before(path, tmp_path):
    checkpoint = tmp_path / "c.npz"
    given = {"checkpoint": str(checkpoint), "learning_rate": 1e30}
    result = train(options(path, **given))
    assert not np.isfinite(result["loss"][-1] or np.nan) and not checkpoint.exists()


def test_a_fifo_is_no_checkpoint(path, tmp_path):
    fifo = tmp_path / "c.npz"
    os.mkfifo(fifo)
    done = subprocess.run([sys.executable, "-m", "sim", *arguments(path, "--checkpoint", fifo)],
                          capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"sim: {fifo}: is not a regular file: delete it, or name another file\n"


@pytest.mark.parametrize(("more", "said"), [
    (("--optimizer", "adam"), "optimizer must be sgd or rowwise-adagrad, not 'adam'"),
    (("--learning-rate", "0"), "learning_rate must be finite and above 0 as a float32, not 0.0"),
    (("--epsilon", "nan"), "epsilon must be finite and above 0 as a float32, not nan"),
    (("--epochs", "0"), "epochs must be at least 1, not 0"),
    (("--interval", "0"), "interval must be at least 1, not 0"),
    (("--fidelity", "paper"), "fidelity must be one of rtl, not 'paper'"),
    (("--set", "gradient_partials=some"), "gradient_partials must be exact or rounded, not 'some'"),
    (("--set", "gradient_sums=float64"), "gradient_sums must be exact or float32, not 'float64'"),
    (("--set", "gradient_sums=float32"), "gradient_sums must be exact with reference, which sums "
     "exactly, not 'float32'"),
    (("--set", "remote_cache=true"), "remote_cache must be false in training"),
    (("--set", "interaction=true"), "interaction must be false in training"),
    (("--faults", "silent-gpu=1us:1us"), "faults must be left out with --reference"),
    (("--checkpoint", "."), "checkpoint must be a file, not the folder '.'"),
    (("--checkpoint", "-"), "checkpoint must be a file, not '-'"),
    (("--checkpoint", __file__), f"{__file__}: is not a checkpoint"),
    (("--checkpoint", "/proc/none/c.npz"), "checkpoint cannot be written: /proc/none/c.npz"),
    (("--data", "no/such/file.txt"), "no/such/file.txt"),
    (("--mini-batch", "0"), "mini_batch must be at least 1, not 0"),
])
def test_mistakes_are_one_line(path, capsys, more, said):
    with pytest.raises(SystemExit) as end:
        main(arguments(path, *more))
    shown = capsys.readouterr()
    assert end.value.code == 2 and shown.out == ""
    assert said in shown.err and shown.err.count("\n") == 1 and shown.err.startswith("sim: ")


def test_standard_output_is_json_alone(path, capsys):
    with pytest.raises(SystemExit):
        main(arguments(path, "--json", "-"))
    shown = capsys.readouterr()
    assert json.loads(shown.out)["steps"] == 5
    assert "epoch 1, step 5: loss" in shown.err


@pytest.mark.parametrize("epoch", [2, 3])
def test_data_that_change_between_epochs_are_refused(path, tmp_path, epoch):
    data, model = tmp_path / "ratings.csv", str(tmp_path / "c.npz")
    movielens(data, SAMPLES)
    changed = []

    def change() -> None:
        # The first mini-batch of an epoch is read ahead.
        if training.steps == -(-SAMPLES // BATCH) * (epoch - 1) - 1 and not changed:
            changed.append(data.write_bytes(data.read_bytes().replace(b",4.0,", b",1.0,", 1)))

    training = Training(options("movielens", data=str(data), epochs=3, checkpoint=model))
    with pytest.raises(InputError, match=r"ratings\.csv: was changed while the command read it"):
        training.execute(stop=change)
    assert changed and not os.path.exists(model)
    assert train(options("movielens", data=str(data), epochs=3))["complete"]
