"""The attacks: each makes one try from a seed, in a folder of its own, and says how it ended."""

import io
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import typer

from gen.options import config_types, configure
from host.dlrm.checkpoint import load_checkpoint, save_checkpoint
from host.dlrm.optimizer import Optimizer
from host.dlrm.trainer import reference_trainer
from host.errors import InputError
from host.model import Model
from host.sealed import write_sealed
from rtl.config import PRESETS, preset
from sim.cli.main import app
from sim.files.journal import Journal
from sim.files.store import Store
from sim.job.settings import Runtime
from sim.run.predictions import PredictionFile
from tests.fuzz.mutating import HOSTILE, mutated, mutated_text
from tests.fuzz.programs import generator, others
from tests.fuzz.trying import Defect, command, refusal
from tests.host.data.readers.files import avazu_lines
from tests.sim import inputs
from tests.sim.experiments.fakes import Spot

__all__ = ["ATTACKS"]

_SHORT = {
    "run": ["--config=tiny", "--fidelity=model", "--samples=16", "--mini-batch=8", "--nodes=2"],
    "train": ["--config=tiny", "--fidelity=model", "--samples=8", "--mini-batch=8", "--nodes=2",
              "--model={model}"],
    "hitrate": ["--config=tiny", "--samples=16", "--mini-batch=8", "--sizes=64"],
    "plan": ["--samples=16", "--mini-batch=8", "--hit-rate=0.5"],
    "batching": ["--model=avazu", "--samples=32", "--mini-batch=8", "--window=16"],
    "describe": ["--samples=16"],
    "serve": [], "reproduce": ["--output={folder}/out"], "bench": [],
    "faults": ["--output={folder}/out"], "torch": ["--nodes=2"],
}
"""Commands that are over at once, if nothing else is asked of them."""

_LONG = ("samples", "epochs", "requests", "warmup", "most-keys", "first-sample", "sizes", "nodes")
"""Options that may ask for a lot of work and mean it."""

_MODEL = """\
name = "small"
rows = [50, 3, 400]
dimension = 16
dense = 13
bottom = [8, 16]
top = [4, 1]
pooling = "sum"
"""

_FAULTS = 'faults = ["silent-host=1us:2us@0", "silent-gpu=1us:2us@1"]\nseed = 3\n'

_SCRIPT = """\
import torch

bag = torch.nn.EmbeddingBag(40, 16, mode="sum")
print(bag(torch.arange(8), torch.arange(0, 8, 2)).sum())
"""

Attack = Callable[[random.Random, Path], str]


@cache
def _options() -> dict[str, list[str]]:
    """Return the options of each command."""
    group = typer.main.get_command(app)
    commands = dict(group.commands)  # type: ignore[attr-defined]
    commands |= commands.pop("datasets").commands
    return {name: [option for parameter in commands[name].params
                   for option in getattr(parameter, "opts", ()) if option.startswith("--")]
            for name in _SHORT}


def _begun(name: str, folder: Path) -> list[str]:
    model = folder / "model.toml"
    model.write_text(_MODEL)
    words = ["datasets", "describe", str(inputs.criteo(folder / "in.txt", 4))
             ] if name == "describe" else [name]
    return [*words, *(word.format(folder=folder, model=model) for word in _SHORT[name])]


def options(chance: random.Random, folder: Path) -> str:
    """Give one to three options values of others, or of none."""
    name = chance.choice(list(_SHORT))
    arguments, changed = _begun(name, folder), []
    for _ in range(chance.choice((1, 1, 2, 3))):
        option = chance.choice(_options()[name] if chance.random() < 0.97 else
                               ("--", "-x", "--no-such"))
        value = chance.choice(HOSTILE)
        if chance.random() < 0.2:
            value = mutated_text(value, chance)
        if option == "--waves" or (option in _OUTPUTS and value and value[0] not in "/-"):
            value = str(folder / "o" / "written") if "\0" in value else f"{folder}/{value}"
        if option in ("--fidelity", "--engine") and value == "rtl":
            continue
        changed.append(option[2:])
        arguments += chance.choice(([f"{option}={value}"], [option, value]))
    if name == "torch":
        script = folder / "script.py"
        script.write_text(_SCRIPT)
        arguments.append(str(script))
    return command(arguments, may_be_long=bool({*changed} & {*_LONG}))


_OUTPUTS = ("--json", "--picture", "--predictions", "--pcap", "--checkpoint", "--output",
            "--points", "--report")


def settings(chance: random.Random, folder: Path) -> str:
    """Set one to three fields of the NIC or registers, of the simulator or of the generator."""
    fields = [*config_types(), *Runtime.__dataclass_fields__]
    given = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        value = chance.choice((chance.choice(HOSTILE), str(1 << chance.randrange(40)),
                               str(chance.randrange(-4, 300))))
        text = f"{chance.choice(fields)}={value}"
        given.append(mutated_text(text, chance) if chance.random() < 0.1 else text)
    if chance.random() < 0.3:
        config = chance.choice(list(PRESETS))
        return refusal(lambda: configure(preset(config), given), ValueError, TypeError)
    return command([*_begun(chance.choice(("run", "train")), folder),
                    *(f"--set={text}" for text in given)], may_be_long=True, may_be_large=True)


def toml(chance: random.Random, folder: Path) -> str:
    """Change a file of a model, a cluster, a profile, or faults."""
    kind = chance.choice(("model", "cluster", "network", "gpu", "pcie", "faults"))
    text = {"model": _MODEL, "faults": _FAULTS, **_shipped()}[kind]
    path = folder / f"{kind}.toml"
    content = mutated(text.encode(), chance)
    path.write_bytes(content)
    begun = _begun("run", folder)
    return command([*begun, f"--{kind}={path}"], may_be_long=True)


@cache
def _shipped() -> dict[str, str]:
    from importlib.resources import files

    host = files("host")
    return {"cluster": (host / "clusters" / "direct_pair.toml").read_text(),
            **{name: (host / "profiles" / f"{file}.toml").read_text() for name, file in (
                ("network", "ethernet_100g_switch"), ("gpu", "gpu_rtx8000"),
                ("pcie", "pcie_gen3x16"))}}


def _array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(24).reshape(8, 3))
    return file.getvalue()


def _archive() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, X_int=np.ones((6, 13), np.int32), y=np.zeros(6, np.int32),
                        X_cat=np.ones((6, 26), np.int32), counts=np.full(26, 40))
    return file.getvalue()


@cache
def _samples() -> dict[str, bytes]:
    import gzip
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        made = {"criteo": inputs.criteo(Path(name, "a"), 6).read_bytes(),
                "movielens": inputs.movielens(Path(name, "b"), 6).read_bytes(),
                "avazu": "\n".join(avazu_lines(6)).encode(),
                "trace": b"0:1 1:2 1:3\n\n0:4 2:5\n", "dlrm-npz": _archive()}
    return made | {"array": _array(), "gzip": gzip.compress(made["criteo"], mtime=0)}


def samples(chance: random.Random, folder: Path) -> str:
    """Change a file of samples, of the format that is named or another."""
    kind = chance.choice(list(_samples()))
    path = folder / "data"
    path.write_bytes(mutated(_samples()[kind], chance))
    named = {"array": "trace", "gzip": "criteo"}.get(kind, kind)
    given = chance.choice(([], [f"--format={named}"], ["--format=criteo"], ["--format=trace"]))
    if chance.random() < 0.7:
        return command(["datasets", "describe", str(path), *given])
    more = chance.choice((["--index=exact"], [], []))
    return command(["run", "--config=tiny", "--fidelity=model", "--mini-batch=4", "--nodes=2",
                    f"--data={path}", *given, *more])


_SHAPE = Model((50, 3, 400), 16, 3, (8, 16), (4, 1))


@cache
def _checkpoint() -> bytes:
    trainer = reference_trainer(_SHAPE, 1)
    trainer.embeddings.rows.write(np.arange(5), np.ones((5, 16), np.float32),  # type: ignore
                                  np.zeros(5, np.float32))
    file = io.BytesIO()
    save_checkpoint(file, 3, trainer.dense, trainer.embeddings.rows, Optimizer())  # type: ignore
    return file.getvalue()


def checkpoints(chance: random.Random, folder: Path) -> str:
    """Change bits of a checkpoint, or its arrays with a right seal around them."""
    path = folder / "c.npz"
    content = _checkpoint()
    resealed = chance.random() < 0.5
    if resealed:
        with np.load(io.BytesIO(content)) as file:
            arrays = dict(file)
        name = chance.choice(list(arrays))
        arrays[name] = _changed(arrays[name], chance)
        with path.open("w+b") as file:
            write_sealed(file, arrays)
    else:
        path.write_bytes(mutated(content, chance))
    trainer = reference_trainer(_SHAPE, 1)
    rows = trainer.embeddings.rows  # type: ignore[attr-defined]
    ended = refusal(lambda: load_checkpoint(path, trainer.dense, rows, Optimizer()), InputError)
    if ended == "refused" and len(rows):
        raise Defect("a refused checkpoint left rows")
    if ended == "done" and not resealed and path.read_bytes() != content:
        raise Defect("a changed checkpoint is taken")
    if not all(np.isfinite(values).all() for values in rows.written()):
        raise Defect("numbers that are none are taken")
    return ended


def _changed(array: np.ndarray, chance: random.Random) -> np.ndarray:
    kind = chance.randrange(5)
    if kind == 0:
        return array.astype(chance.choice((np.float64, np.int8, np.bool_, "S8"))) if (
            array.dtype.kind != "U") else np.array(mutated_text(str(array), chance))
    if kind == 1:
        return array.reshape(-1)[:chance.randrange(4)]
    if kind == 2:
        return np.array(chance.choice(("", "{}", "[1]", "[" * 50_000, "null")))
    if kind == 3 and array.size and array.dtype.kind in "if":
        changed = array.copy().reshape(-1)
        changed[chance.randrange(changed.size)] = chance.choice(
            (-3, -1, 1 << 40, 0) if array.dtype.kind == "i" else (np.nan, np.inf, -np.inf, -1.0))
        return changed.reshape(array.shape)
    return np.array(chance.choice((np.nan, -1, 1 << 62)))


def stores(chance: random.Random, folder: Path) -> str:
    """Change a finished point of a sweep: what comes back is what was measured, or nothing."""
    store, spot, metrics = Store(folder, "v"), Spot("a", 0.5), {"us": 12.25, "runs": [1, 2, None]}
    store.put(spot, metrics)
    path = next(folder.rglob("*.json"))
    path.write_bytes(mutated(path.read_bytes(), chance))
    found: list[dict | None] = []
    refusal(lambda: found.append(store.get(spot)))
    if found[0] not in (None, metrics):
        raise Defect(f"a changed point gives {found[0]}")
    return "refused" if found[0] is None else "done"


def journals(chance: random.Random, folder: Path) -> str:
    """Change the results of a command that was stopped: it goes on from what it wrote, or not."""
    path = folder / "bench.json"
    rows = {"a": {"name": "a", "value": 1.5}, "b": {"name": "b", "value": 3}}
    with Journal(str(path), "s", {"only": ["x"]}) as journal:
        for name, row in rows.items():
            journal.add(name, row)
    path.write_bytes(mutated(path.read_bytes(), chance))
    found: list[dict] = []

    def again() -> None:
        with Journal(str(path), "s", {"only": ["x"]}) as journal:
            found.append(dict(journal.finished))

    ended = refusal(again, ValueError)
    if found and found[0] not in (rows, {}):
        raise Defect(f"changed rows are taken: {found[0]}")
    return ended if found and found[0] == rows else "refused"


def predictions(chance: random.Random, folder: Path) -> str:
    """Change the predictions of a run that was stopped."""
    path = folder / "p.csv"
    text = b"sample,prediction\n" + b"".join(b"%d,0.%d25\n" % (n, n) for n in range(12))
    path.write_bytes(mutated(text, chance))
    first = chance.randrange(14)

    def again() -> None:
        with PredictionFile(path, first, lambda: 0.25) as file:
            file(np.zeros(2, np.float32))

    return refusal(again, ValueError, OSError)


def faults(chance: random.Random, folder: Path) -> str:
    """Give faults of frames and silences, changed."""
    text = chance.choice(("silent-gpu=20us:1ms@1", "drop-vectors=#3+7-9@0>1", "seed=5,drop=0.5",
                          "reorder=0.3:5us,duplicate=1e-3", "down=1us:2us@0<>1", "delay=1:1us@>1"))
    path = folder / "run.json"
    told = {"faults": {"given": ["silent-gpu=20us:1ms"], "seed": 3}}
    if chance.random() < 0.2:
        path.write_bytes(mutated(json.dumps(told).encode(), chance))
        text = str(path)
    else:
        text = mutated_text(text, chance)
    return command([*_begun("run", folder), f"--faults={text}"], may_be_long=True)


ATTACKS: dict[str, tuple[Attack, int]] = {
    "options": (options, 20), "settings": (settings, 15), "TOML": (toml, 15),
    "samples": (samples, 15), "checkpoints": (checkpoints, 10), "points": (stores, 5),
    "journals": (journals, 5), "predictions": (predictions, 5), "faults": (faults, 7),
    "generator": (generator, 3), "other programs": (others, 5)}
"""The attacks by name, and what share of the tries each has, of 100."""
