"""No code of the product loads a format that can execute code."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml",
            "multiprocessing.connection", "multiprocessing.managers", "xmlrpc", "socketserver"}
_CALLS = {"eval", "torch.load", "joblib.load", "pandas.read_pickle", "pd.read_pickle",
          "tempfile.mktemp", "mktemp"}
_TRUSTED = {"sim/evaluation/sweep.py: pickle"}
"""Dask and loky unpickle what their scheduler sends before this code does."""


def unsafe(text: str) -> list[str]:
    """Return what a module imports or calls that executes what it reads."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names if _is_unsafe(each.name)]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{each.name}" for each in node.names)]
            found += [name for name in names if _is_unsafe(name)]
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            found += [name] if name in _CALLS else []
            found += [f"{name}({each.arg}=...)" for each in node.keywords
                      if ast.unparse(each.value) != {
                          "allow_pickle": "False", "weights_only": "True"}.get(
                              each.arg or "", ast.unparse(each.value))]
        elif isinstance(node, ast.Constant) and node.value == "0.0.0.0":
            found.append("0.0.0.0")
    return found


def _is_unsafe(name: str) -> bool:
    return name in _MODULES or name.partition(".")[0] in _MODULES


@pytest.mark.parametrize("folder", ["rtl", "gen", "host", "sim", "embernic_torch",
                                    "embernic_names"])
def test_nothing_is_unpickled(folder):
    start = ROOT / folder
    found = {f"{path.relative_to(ROOT)}: {each}"
             for path in ([start] if start.is_file() else start.rglob("*.py"))
             for each in unsafe(path.read_text(encoding="utf-8"))}
    assert found <= _TRUSTED


@pytest.mark.parametrize("text", [
    "import pickle", "from multiprocessing.connection import Client", "import numpy as np\n"
    "np.load('x', allow_pickle=True)", "eval(text)", "from multiprocessing import connection",
    "torch.load(path)", "bind(('0.0.0.0', 1))", "joblib.load(path)"])
def test_what_is_unsafe_is_found(text):
    assert unsafe(text)
