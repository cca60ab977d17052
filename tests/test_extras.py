"""Without an extra, each command that requires it reports it in one line, and all others work."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from embernic_extras import PACKAGES, ExtraError, installation, main, require
from tests.hiding import COMMANDS, EXTRAS, NEEDS, TOOLS
from tests.test_docs import APPS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PRODUCT = [path for folder in ("gen", "host", "rtl", "sim")
           for path in sorted((ROOT / folder).rglob("*.py"))]
TOPS = {module.partition(".")[0] for module in PACKAGES} | {"dask", "tensordict", "torchmetrics"}


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """Return the end of each command, with each extra hidden in turn."""
    if not hasattr(os, "fork"):
        pytest.skip("the test requires fork")
    folder = tmp_path_factory.mktemp("hidden")
    done = subprocess.run([sys.executable, "-m", "tests.hiding", str(folder)], cwd=ROOT,
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(path.read_text()) for path in folder.glob("*.json")]


@pytest.mark.thorough
def test_a_command_names_the_extra_that_it_requires_or_works(ends):
    assert {extra for end in ends for extra in end["missing"]} == set(EXTRAS)
    for end in ends:
        for command, (status, said) in end["ends"].items():
            assert "Traceback" not in said, said
            lacking = [each for each in NEEDS.get(command, ()) if each in end["missing"]]
            if lacking:
                assert status == 2 and said.count("\n") == 1, said
                assert installation(lacking[0]) in said and " requires " in said
            else:
                assert status == 0 and " requires " not in said, (end["missing"], command, said)


def test_every_command_is_run():
    def commands(name, command):
        inside = getattr(command, "commands", None)
        if not inside:
            yield name
        for word, below in (inside or {}).items():
            yield from commands(f"{name} {word}", below)

    known = {name for module, path in APPS.items()
             for name in commands(module, typer.main.get_command(
                 __import__(path, fromlist=["app"]).app))}
    assert known <= set(COMMANDS)
    programs = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
                for path in PRODUCT if re.search(r"^if __name__ == ", path.read_text(), re.M)}
    assert programs <= {name.partition(" ")[0] for name in COMMANDS}


def test_every_extra_has_its_packages():
    extras = set(PROJECT["optional-dependencies"]) - set(TOOLS)
    assert extras == set(EXTRAS) == {extra for _, extra in PACKAGES.values()}
    assert {each for needed in NEEDS.values() for each in needed} <= extras
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    installed = set(re.findall(r"\.\[test,([\w,-]+)\]", script))
    # The extra `test` has pandas.
    assert {each for group in installed for each in group.split(",")} == extras - {"pandas"}
    for command in re.findall(r"pip (install --no-deps \S+)", installation("torchrec")):
        assert command in script and command in (ROOT / "docs/pytorch.md").read_text()


def _imports(tree):
    """Yield the modules that a file imports when it runs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        if isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module
        yield from _imports(node)


def test_optional_packages_are_imported_by_require_alone():
    """Only ``sim.torch`` imports PyTorch by itself: the whole folder requires it."""
    for path in PRODUCT:
        if (ROOT / "sim/torch") not in path.parents:
            found = {name.partition(".")[0] for name in _imports(ast.parse(path.read_text()))}
            assert not found & TOPS, path


def test_a_package_whose_import_fails_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "distributed.py").write_text("raise RuntimeError('built for\\nanother NumPy')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "distributed", raising=False)
    with pytest.raises(ExtraError) as error:
        require("distributed", "the backend")
    said = str(error.value)
    assert "\n" not in said and "RuntimeError: built for another NumPy" in said
    assert said.endswith("pip install --editable '.[dask]'")


def test_messages_name_the_commands_of_the_documents():
    """They install the package from the repository, like the documents."""
    shown = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    for extra in ("torch", "torchrec"):
        commands = re.findall(r"pip install .*?(?= and |$)", installation(extra))
        assert len(commands) == 1 + (extra == "torchrec")
        assert all(command in shown for command in commands)


def test_a_parent_that_is_not_there(monkeypatch, capsys):
    parents = {module.partition(".")[0] for module in PACKAGES}
    for module in [each for each in sys.modules if each.partition(".")[0] in parents]:
        monkeypatch.delitem(sys.modules, module)  # an earlier test may have imported it
    for parent in parents:
        monkeypatch.setitem(sys.modules, parent, None)
    with pytest.raises(ExtraError, match=r"^x requires cuda-bindings: install the extra"):
        require("cuda.bindings.nvrtc", "x")
    assert main() == 1
    assert len(capsys.readouterr().err.splitlines()) == len(PACKAGES)
