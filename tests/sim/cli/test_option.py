"""An option is defined once: its field is on the command line, in the API and in TOML."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from inspect import signature
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gen.base.option import REQUIRED, option
from host.errors import InputError
from host.toml.schema import read_toml
from sim import api
from sim.bench.rows import BenchOptions
from sim.cli.command import Shown, command
from sim.experiments.options import ReproduceOptions
from sim.faults.options import FaultsOptions
from sim.job.arguments import check_bounds, takes
from sim.job.options import RunArguments
from sim.job.program import AttachArguments, TorchArguments
from sim.offline.options import BatchingOptions, DescribeOptions, HitrateOptions, PlanOptions
from sim.serving.options import ServeOptions
from sim.training.options import TrainArguments

_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Options of a command."""

    rows: int = option(4, "Rows of a table.", least=1, most=9)
    policy: str = option("lru", "Policy of the cache.", among=("lru", "srrip"))

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True, kw_only=True)
class More(Kept):
    """The same options and another one of its own."""

    banks: int | None = option(None, "Banks of a row.", least=2, shown="all")


@takes(More, More)
def made(options: More) -> More:
    """Return the options.

    Returns
    -------
    More
        The options.
    """
    return options


@command(More)
def shown(given: dict, shown: Shown) -> None:
    """Show the options."""
    typer.echo(made(**given))


def _on_command_line(*arguments: str):
    app = typer.Typer()
    app.command()(shown)
    return CliRunner().invoke(app, arguments)


def test_a_new_option_is_on_the_command_line():
    assert _on_command_line("--banks", "3").stdout == f"{More(banks=3)}\n"
    assert _on_command_line().stdout == f"{More()}\n"
    told = " ".join(_on_command_line("--help").stdout.split())
    assert "Banks of a row." in told and "default: (all)" in told
    assert _on_command_line("--banks", "x").exit_code == 2


def test_a_new_option_is_an_argument_of_the_function():
    assert made(banks=3) == More(banks=3) and made(banks=None) == More()
    assert list(signature(made).parameters) == ["rows", "policy", "banks"]
    assert "banks\n    Banks of a row." in (made.__doc__ or "")
    with pytest.raises(TypeError, match=r"^banks must be an integer, not '3'$"):
        made(banks="3")  # type: ignore


def test_a_new_option_is_a_key_of_a_toml_file(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("rows = 2\nbanks = 3\n")
    assert read_toml(path, More) == More(rows=2, banks=3)
    path.write_text("rows = 2\nbanks = 1\n")
    with pytest.raises(InputError, match=r"x\.toml: banks must be at least 2, not 1$"):
        read_toml(path, More)


@pytest.mark.parametrize(("given", "said"), [
    ({"rows": 0}, "rows must be at least 1, not 0"),
    ({"rows": 10}, "rows must be at most 9, not 10"),
    ({"policy": "mru"}, "policy must be one of lru, srrip, not 'mru'"),
    ({"banks": 1}, "banks must be at least 2, not 1")])
def test_bounds_are_those_of_the_field(given, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        made(**given)
    (name, value), = given.items()
    assert str(_on_command_line(f"--{name}", str(value)).exception) == said


@pytest.mark.parametrize(("function", "kind"), [
    (api.run, RunArguments), (api.train, TrainArguments), (api.bench, BenchOptions),
    (api.hitrate, HitrateOptions), (api.batching, BatchingOptions), (api.plan, PlanOptions),
    (api.describe, DescribeOptions), (api.reproduce, ReproduceOptions), (api.serve, ServeOptions),
    (api.faults, FaultsOptions), (api.torch, TorchArguments), (api.attach, AttachArguments)])
def test_functions_have_the_options_as_their_signature(function, kind):
    assert set(signature(function).parameters) == {
        each.name for each in fields(kind) if each.init}


@dataclass(frozen=True)
class Several:
    """An argument, lists, a flag and a renamed value."""

    names: Sequence[str] = option(REQUIRED, "Names.")
    _: KW_ONLY
    sizes: Sequence[int] | None = option(None, "Sizes.", none="all")
    only: Sequence[str] = option(("a", "b"), "Names.")
    seeds: int | Sequence[int] = option(1, "Seeds.")
    demo: bool = option(False, "Demo.")
    kind: str = option("model", "Kind.", among=("rtl", "model"), old={"model": "fast"})

    def __post_init__(self) -> None:
        check_bounds(self)


@takes(Several)
def several(options: Several) -> Several:
    """Return the options."""
    return options


@command(Several)
def listed(given: dict, shown: Shown) -> None:
    """Show the options."""
    typer.echo(several(**given))


@pytest.mark.parametrize(("line", "options"), [
    (["x", "y"], Several(("x", "y"))),
    (["x", "--sizes", "all", "--demo"], Several(("x",), demo=True)),
    (["x", "--sizes", "3,4", "--only", "c, d"], Several(("x",), sizes=(3, 4), only=("c", "d"))),
    (["x", "--seeds", "7"], Several(("x",), seeds=7)),
    (["x", "--seeds", "7,8"], Several(("x",), seeds=(7, 8))),
    (["x", "--kind", "rtl"], Several(("x",), kind="rtl"))])
def test_lists_and_arguments_on_the_command_line(line, options):
    app = typer.Typer()
    app.command()(listed)
    found = CliRunner().invoke(app, line)
    assert found.stdout == f"{options}\n", found.stderr


def test_an_old_name_has_a_line_that_names_the_new_one(capsys):
    assert several(["x"], kind="fast") == Several(("x",)) and capsys.readouterr().err == ""
    assert several(["x"], kind="model") == Several(("x",))
    assert capsys.readouterr() == ("", "sim: --kind model is the old name of --kind fast\n")
    with pytest.raises(ValueError, match=r"^kind must be one of rtl, fast, not 'x'$"):
        several(["x"], kind="x")
    assert signature(several).parameters["kind"].default == "fast"


def test_a_required_option_is_required():
    with pytest.raises(TypeError, match="names"):
        several()  # type: ignore
    with pytest.raises(TypeError, match="too many positional"):
        several(["x"], [1])  # type: ignore


def test_type_checkers_see_the_signature(tmp_path):
    pytest.importorskip("pyright")
    (tmp_path / "wrong.py").write_text(
        "from sim import api\n"
        "api.run(nodes=2, data='x', set=['dedupe=false'], skip=False)\n"
        "api.run(colour=1)\n"
        "api.run(nodes='two')\n"
        "api.train(warmup=1)\n")
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{_ROOT}"]}}')
    found = subprocess.run([sys.executable, "-m", "pyright", "-p", str(tmp_path)], text=True,
                           capture_output=True, check=False)
    lines = {line.split(":")[1] for line in found.stdout.splitlines() if " - error: " in line}
    assert lines == {"3", "4", "5"}, found.stdout
