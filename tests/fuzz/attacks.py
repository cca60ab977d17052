"""The attacks: each makes one try from a seed, in a folder of its own, and returns how it ended."""

import io
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import typer

from gen.base.settings import config_types, configure
from rtl.config import PRESETS, preset
from sim.cli.main import app
from sim.job.settings import Runtime
from tests.fuzz.mutating import HOSTILE, mutated, mutated_text
from tests.fuzz.programs import generator, others
from tests.fuzz.results import checkpoints, predictions, stores
from tests.fuzz.trying import command, refusal
from tests.host.data.readers.files import avazu_lines
from tests.sim import inputs

__all__ = ["ATTACKS"]

_SHORT = {
    "run": ["--config=tiny", "--fidelity=fast", "--samples=16", "--mini-batch=8", "--nodes=2"],
    "train": ["--config=tiny", "--reference", "--samples=8", "--mini-batch=8", "--nodes=2",
              "--model={model}"],
    "hitrate": ["--config=tiny", "--samples=16", "--mini-batch=8", "--sizes=64"],
    "plan": ["--samples=16", "--mini-batch=8", "--hit-rate=0.5"],
    "batching": ["--model=avazu", "--samples=32", "--mini-batch=8", "--window=16"],
    "describe": ["--samples=16"],
    "serve": [], "reproduce": ["--output={folder}/out"], "bench": [],
    "faults": ["--output={folder}/out"], "torch": ["--nodes=2"],
}
"""Commands that end at once by default."""

_LONG = ("samples", "epochs", "requests", "warmup", "most-keys", "first-sample", "sizes", "nodes")
"""Options that may validly ask for a lot of work."""

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
    """Give one to three options values of other options, or invalid values."""
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
    return command(["run", "--config=tiny", "--fidelity=fast", "--mini-batch=4", "--nodes=2",
                    f"--data={path}", *given, *more])


def faults(chance: random.Random, folder: Path) -> str:
    """Give faults of frames and silences, mutated."""
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
    "samples": (samples, 15), "checkpoints": (checkpoints, 10), "points": (stores, 7),
    "predictions": (predictions, 3), "faults": (faults, 7),
    "generator": (generator, 3), "other programs": (others, 5)}
"""The attacks by name, and the percentage of tries of each."""
