"""README and docs/: the links, files, modules, commands and options in them exist."""

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest
import typer

from tests.hiding import EXTRAS
from tests.optional import absent
from tests.pages import DOCS, run_page

ROOT = DOCS.parent
PAGES = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))

APPS = {"sim": "sim.cli.main", "gen": "gen.__main__", "gen.documents": "gen.documents.__main__",
        "host.calibrate": "host.calibrate.__main__",
        "host.measurements": "host.measurements.__main__"}
"""Modules of the command lines that Typer parses, by the name behind ``python -m``."""

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")
_FILE = re.compile(r"(?:[\w-]+/)+(?:[\w-]+\.\w+)?")
_MODULE = re.compile(r"(?:gen|host|rtl|sim)(?:\.[A-Za-z_]\w*)+")
_OPTION = re.compile(r"--[a-z][a-z-]*")

pytestmark = pytest.mark.every

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def _prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def _code(page: Path) -> list[str]:
    """Return the code between backticks in the prose of a page, each on one line."""
    return [" ".join(text.split()) for text in _CODE.findall(_prose(page))]


def _anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _commands(line: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the module and the arguments of each ``python -m`` in a line of shell."""
    for part in re.split(r"&&|\||;", line) if "python -m" in line else ():
        words = shlex.split(part, comments=True)
        if words[:2] == ["python", "-m"]:
            yield words[2], words[3:]


def _parse(module: str, arguments: list[str]) -> None:
    """Parse a command line without running it; raises Typer's errors."""
    command = typer.main.get_command(import_module(APPS[module]).app)
    while arguments and (commands := getattr(command, "commands", None)):
        assert arguments[0] in commands, f"{module} has no command {arguments[0]}"
        command, *arguments = commands[arguments[0]], *arguments[1:]
    if not hasattr(command, "commands"):
        command.make_context(module, list(arguments))


def _options(command) -> set[str]:
    """Return all options of a command and of its subcommands."""
    own = {name for parameter in command.params
           for name in (*parameter.opts, *parameter.secondary_opts)}
    return own.union(*(_options(below) for below in getattr(command, "commands", {}).values()))


@every_page
def test_links_lead_somewhere(page):
    for link in _LINK.findall(_prose(page)):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or target.suffix != ".md" or anchor in _anchors(target), link


@every_page
def test_files_that_are_named_exist(page):
    for text in _code(page):
        if _FILE.fullmatch(text):
            assert (ROOT / text).exists(), text


@every_page
def test_modules_that_are_named_exist(page):
    for text in _code(page):
        if _MODULE.fullmatch(text) and not (ROOT / text).exists():
            if text.startswith("sim.torch"):
                continue
            resolve_name(text)


@every_page
def test_modules_of_pytorch_programs_that_are_named_exist(page):
    named = [text for text in _code(page) if _MODULE.fullmatch(text)
             and text.startswith("sim.torch") and not (ROOT / text).exists()]
    if named:
        pytest.importorskip("torch", reason=absent("torch"))
    for text in named:
        resolve_name(text)


def test_the_table_has_every_extra():
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    table = text.partition("| extra | required by |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)) == EXTRAS


def test_the_code_of_every_page_is_run():
    """Each page is run by a test that names it; without its extra, that test is skipped."""
    with_code = {page.name for page in PAGES
                 if "```python\n" in page.read_text(encoding="utf-8")}
    assert with_code == {name for path in (ROOT / "tests").rglob("test_*.py") for name in
                         re.findall(r'(?:run_page|script_of)\("([\w.]+)"\)',
                                    path.read_text(encoding="utf-8"))}


@every_page
def test_commands_parse(page):
    lines = [line for _, block in _FENCED.findall(page.read_text(encoding="utf-8"))
             for line in block.splitlines()]
    for line in lines:
        for module, arguments in _commands(line):
            if module in APPS:
                _parse(module, arguments)
            else:
                import_module(module)


@every_page
def test_commands_in_sentences_parse(page):
    for text in _code(page):
        for module, arguments in _commands(text):
            if module not in APPS:
                import_module(module)
                continue
            try:
                _parse(module, arguments)
            except Exception as error:
                # A sentence may omit required options.
                if type(error).__name__ != "MissingParameter":
                    raise


@every_page
def test_options_that_are_named_exist(page):
    known = set().union(*(_options(typer.main.get_command(import_module(module).app))
                          for module in APPS.values()))
    for text in _code(page):
        found = _OPTION.match(text)
        if found:
            assert found[0] in known | {"--help"}, text


@pytest.mark.parametrize("module, arguments", [
    ("sim", ["run", "--epochs=2"]), ("sim", ["dance"]), ("gen", ["--config", "kaggle"])])
def test_a_wrong_command_is_noticed(module, arguments):
    with pytest.raises(Exception, match=r"No such option|no command|Missing"):
        _parse(module, arguments)


def test_the_page_on_the_api_is_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page("python.md") == 2
