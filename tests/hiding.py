"""Every command with the packages of an extra hidden: ``python -m tests.hiding FOLDER``.

A process writes FOLDER/EXTRA.json: status and standard error of each command. Extras that hide the
same packages share a process and a file.
"""

import contextlib
import io
import json
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import NoReturn
from unittest import mock

import host
import sim
from gen import __main__ as gen
from gen.documents import __main__ as documents
from gen.documents import dissector
from host.calibrate import __main__ as calibrate
from host.measurements import __main__ as measurements
from sim import api
from sim.cli.main import main
from tests.gen.timing.public import __main__ as public

__all__ = ["COMMANDS", "EXTRAS", "NEEDS"]

TOOLS = ("lint", "test")
"""Extras for work on the project itself."""

_SMALL = ["--config=tiny", "--samples=16", "--mini-batch=8", "--nodes=2"]
_MODEL = """\
name = "small"
rows = [50, 3, 400]
dimension = 16
dense = 13
bottom = [8, 16]
top = [4, 1]
pooling = "sum"
"""
_SCRIPT = """\
import torch

bag = torch.nn.EmbeddingBag(40, 16, mode="sum")
for _ in range(2):
    bag(torch.arange(8), torch.arange(0, 8, 2))
"""


class _Reached(BaseException):
    """The command would begin its long work."""


def _reached(*_: object, **__: object) -> NoReturn:
    raise _Reached


_LONG = (
    "gen.__main__.generate", "gen.documents.__main__.documents",
    "tests.gen.timing.public.mapping.synthesise", "host.calibrate.__main__.measure_cpu",
    "host.calibrate.__main__.run",
    "host.measurements.__main__.read_traces", "sim.bench.bench.bench",
    "sim.experiments.reproduce.reproduce", "sim.faults.suite.faults", "sim.serving.serve.serve")


def _distributions(extra: str) -> set[str]:
    """Return the distributions that an extra installs, but neither a plain installation nor an
    extra that it contains.

    TorchRec is named like its extra, which does not install it.
    """
    def names(which: str | None) -> set[str]:
        end = r"$" if which is None else rf"""\s*;\s*extra == ["']{which}["']$"""
        found = (re.match(rf"([\w.-]+)[^;]*{end}", each) for each in requires("embernic") or ())
        return {_normal(match[1]) for match in found if match}

    own = (names(extra) | {extra}) - names(None)
    contained = [each for each in map(names, _extras()) if each < own]
    return own.difference(*contained)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _extras() -> list[str]:
    found = (re.search(r"""extra == ["']([\w-]+)["']""", each)
             for each in requires("embernic") or ())
    return sorted({match[1] for match in found if match} - set(TOOLS))


EXTRAS = _extras()


def _sim(*words: str) -> Callable[[], object]:
    return lambda: main(list(words))


def _asked(call: Callable[[], object]) -> Callable[[], object]:
    """Return a call of the API as a command, which reports a missing extra as ``ImportError``."""
    def run() -> int:
        try:
            call()
        except ImportError as error:
            print(error, file=sys.stderr)
            return 2
        return 0

    return run


def _nic_collection() -> object:
    from sim.torch.modules import NicEmbeddingBagCollection
    return NicEmbeddingBagCollection


COMMANDS: dict[str, Callable[[], object]] = {
    "sim run": _sim("run", "--fidelity=fast", *_SMALL),
    "sim train": _sim("train", "--reference", *_SMALL, "--model=model.toml"),
    "sim bench": _sim("bench"),
    "sim hitrate": _sim("hitrate", "--config=tiny", "--samples=16", "--mini-batch=8", "--sizes=64"),
    "sim batching": _sim("batching", "--model=avazu", "--samples=32", "--mini-batch=8",
                         "--window=16"),
    "sim compare": _sim("compare", "--cluster=h100", "--nodes=2", "--mini-batch=16", "--measured=2",
                        "--system=bl-paper"),
    "sim plan": _sim("plan", "--samples=16", "--mini-batch=8", "--hit-rate=0.5"),
    "sim reproduce": _sim("reproduce", "fig22", "--demo", "--output=out"),
    "sim reproduce --backend dask": _sim(
        "reproduce", "fig22", "--demo", "--output=out", "--backend=dask"),
    "sim serve": _sim("serve"),
    "sim faults": _sim("faults", "--output=out"),
    "sim torch": _sim("torch", "--nodes=2", "script.py"),
    "sim datasets describe": _sim("datasets", "describe", "--samples=16", "trace.txt",
                                  "--format=trace"),
    "gen": lambda: gen.main(["--output=out"]),
    "gen.documents.dissector": lambda: dissector.dissector() and None,
    "gen.documents": lambda: documents.main(["--output=out"]),
    "tests.gen.timing.public": lambda: public.main(),
    "host.calibrate cpu": lambda: calibrate.main(["cpu"]),
    "host.calibrate gpu": lambda: calibrate.main(["gpu", "--device=cpu"]),
    "host.measurements trace": lambda: measurements.main(["trace", "a", "b"]),
    "sim.api.attach": _asked(lambda: api.attach(nodes=2)),
    "sim.api.frame": _asked(lambda: api.frame({"schema": "embernic/serve/1", "loads": []})),
    "sim.torch.modules": _asked(_nic_collection),
}

NEEDS = {
    "sim reproduce --backend dask": ["dask"], "sim torch": ["torch"],
    "host.calibrate gpu": ["torch"], "sim.api.attach": ["torch"], "sim.api.frame": ["pandas"],
    "sim.torch.modules": ["torch", "torchrec"]}
"""Extras that a command requires."""


def _tried(run: Callable[[], object]) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            status = run()
        except SystemExit as end:
            status = end.code
        except _Reached:
            status = 0
        except BaseException:
            traceback.print_exc()
            status = 1
    return status if isinstance(status, int) else 0, said.getvalue()


@cache
def _installed() -> Mapping[str, list[str]]:
    return packages_distributions()


def _modules(extra: str) -> Iterator[str]:
    """Yield the names of the modules that the distributions of an extra install."""
    wanted = _distributions(extra)
    for module, owners in _installed().items():
        if wanted & {_normal(owner) for owner in owners}:
            yield module


def _hide_and_run(extra: str, missing: Sequence[str], target: Path) -> None:
    for module in _modules(extra):
        assert module not in sys.modules, f"{module} is imported before a command asks for it"
        sys.modules[module] = None  # type: ignore[assignment]
    found = {name: _tried(run) for name, run in COMMANDS.items()}
    target.write_text(json.dumps({"missing": missing, "ends": found}), encoding="utf-8")


def _load() -> None:
    """Import the modules of all commands except ``sim torch``, once for all processes."""
    packages = [host, sim]
    for package in packages:
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(".__main__") and found.name != "sim.torch":
                module = import_module(found.name)
                if found.ispkg:
                    packages.append(module)


def _all(folder: Path) -> int:
    os.chdir(folder)
    Path("model.toml").write_text(_MODEL, encoding="utf-8")
    Path("script.py").write_text(_SCRIPT, encoding="utf-8")
    Path("trace.txt").write_text("0:24 1:0 2:3\n0:2 1:1\n", encoding="utf-8")
    _load()
    with contextlib.ExitStack() as patches:
        for name in _LONG:
            patches.enter_context(mock.patch(name, _reached))
        made: set[tuple[str, ...]] = set()
        for extra in EXTRAS:
            missing = tuple(each for each in EXTRAS if each == extra or not list(_modules(each)))
            if missing in made:
                continue
            made.add(missing)
            child = os.fork()
            if not child:
                status = 1
                try:
                    _hide_and_run(extra, missing, folder / f"{extra}.json")
                    status = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(status)
            if os.waitpid(child, 0)[1]:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(_all(Path(sys.argv[1]).absolute()))
