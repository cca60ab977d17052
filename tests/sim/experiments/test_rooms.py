"""The packages of the evaluation: each imports only from packages below it."""

import ast
from pathlib import Path

import sim.experiments

ROOMS = ("maps", "claims", "results", "figures", "checks", "sensitivity")
"""From top to bottom."""

FOLDER = Path(sim.experiments.__file__).parent


def _imported(path: Path) -> set[str]:
    """Return the packages from which a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import)
                for name in node.names]
    return {module.split(".")[2] for module in modules if module.startswith("sim.experiments.")}


def test_imports_go_down():
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} - {"__pycache__"} == set(ROOMS)
    for place, room in enumerate(ROOMS):
        for path in (FOLDER / room).rglob("*.py"):
            assert _imported(path) <= set(ROOMS[place:]), path


def test_no_room_knows_the_whole_evaluation():
    assert not [path for room in ROOMS for path in (FOLDER / room).rglob("*.py")
                if "reproduce" in _imported(path)]


def test_reproduce_names_no_figure():
    text = (FOLDER / "reproduce.py").read_text(encoding="utf-8")
    assert "fig0" not in text and "tornado" not in text and "beyond" not in text
