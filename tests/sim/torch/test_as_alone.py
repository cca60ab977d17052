"""A script on NICs observes and prints the same as without NICs."""

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
import torch

from sim import api
from tests.sim.shown import complaints

NAMES = ("gen", "host", "sim", "rtl", "rich", "typer", "csv")
"""Modules of the script with the names of EmberNIC's packages, of packages that the command imports
before the script, and of a module in Python's library."""

OBSERVED = '''"""A script with modules of its own."""
import __main__, atexit, builtins, inspect, multiprocessing, os, pickle, signal, sys, threading
import traceback, warnings
import gen, csv, rich
import torch
from helper import where
import host, sim, rtl, typer

class Mine:
    """Pickled by name."""

def square(number):
    return number * number

def main():
    bag = torch.nn.EmbeddingBag(100, 16, mode="sum", _weight=torch.ones(100, 16))
    return bag, bag(torch.arange(8), torch.arange(0, 8, 2)).sum().item()

if __name__ == "__main__":
    print(__file__, sys.argv, sys.path[0], sys.orig_argv[1:], where)
    print(list(globals())[:9], __spec__, __cached__, __package__, __doc__, type(__loader__))
    print(__loader__.path, __builtins__ is builtins, sys.modules["__main__"] is __main__)
    print([each.NAME for each in (gen, host, sim, rtl, rich, typer, csv)])
    print([name for name in sys.modules if name.partition(".")[0] in ("gen", "host", "sim", "rtl")])
    print(pickle.loads(pickle.dumps(Mine())).__class__ is Mine, inspect.getsource(square))
    print(signal.getsignal(signal.SIGINT), sys.exc_info(), sys.gettrace(), sys.getprofile())
    print(sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__,
          threading.excepthook is threading.__excepthook__, threading.current_thread().name)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(square, [1, 2, 3]))
    bag, found = main()
    print(found, sys.modules["gen"] is gen)
    print(bag.weight.untyped_storage().resizable())
    bag.weight.data.untyped_storage().resize_(0)
    bag.weight.data.untyped_storage().resize_(6400)
    indices = torch.arange(4)
    torch.nn.functional.embedding_bag(indices, torch.ones(9, 4), torch.tensor([0]), mode="sum")
    print(indices.untyped_storage().resize_(8).nbytes())
    threading.excepthook = lambda args: print([frame.name for frame in traceback.extract_tb(
        args.exc_traceback)], args.exc_value)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start(), thread.join()
    class Dropped:
        def __del__(self):
            1 / 0
    sys.unraisablehook = lambda args: print(type(args.exc_value).__name__)
    dropped = Dropped()
    del dropped
    sys.displayhook = lambda value: print("shown", value)
    sys.displayhook(3)
    warnings.simplefilter("error")
    builtins.print = lambda *args, own=print: own(*args)
    atexit.register(print, "second", "handler")
    atexit.register(print, "first handler")
    late = threading.Event()
    threading.Thread(target=lambda: (late.wait(5), print("thread", main()[1]))).start()
    def hook(kind, value, trace):
        print(kind.__name__, value, [frame.name for frame in traceback.extract_tb(trace)])
        print(value.__context__ and value.__context__.args, sys.last_value is value)
        late.set()
    sys.excepthook = hook
    def fails():
        torch.nn.functional.linear(torch.ones(2), torch.ones(3, 3))
    def tracer(frame, event, arg):
        return None
    sys.settrace(tracer)
    try:
        fails()
    except RuntimeError as error:
        raise ValueError("of mine") from error
'''


def run(folder: Path, *command: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True,
                          timeout=300)


def own_modules(folder: Path) -> None:
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"NAME = {name!r} + ' of the script'\n")


def on_nics(folder: Path, script: str, *options: str) -> subprocess.CompletedProcess:
    return run(folder, "-m", "sim", "torch", "--nodes", "2", "--config", "tiny", *options, script)


def as_alone(alone: subprocess.CompletedProcess, done: subprocess.CompletedProcess) -> None:
    """Check that stdout begins with the output of the script alone; the report follows."""
    assert done.stdout[:len(alone.stdout)] == alone.stdout, done.stderr
    assert "Embedding bags of" in done.stdout[len(alone.stdout):].lstrip().splitlines()[0]
    assert done.returncode == alone.returncode


@pytest.mark.thorough
def test_all_that_a_script_observes(tmp_path):
    folder, elsewhere = tmp_path / "real", tmp_path / "elsewhere"
    folder.mkdir(), elsewhere.mkdir()
    own_modules(folder)
    (folder / "helper.py").write_text("where = __file__\n")
    (folder / "script.py").write_text(OBSERVED)
    (elsewhere / "link.py").symlink_to("../real/script.py")
    alone, done = run(elsewhere, "./link.py"), on_nics(elsewhere, "./link.py")
    assert "first handler\nsecond handler\n" in alone.stdout and alone.returncode == 1
    as_alone(alone, done)
    assert alone.stderr == "" and "Traceback" not in done.stderr


@pytest.mark.slow
def test_names_of_the_script_with_nics_in_rtl(tmp_path):
    """A traceback has only the script's frames; the RTL and the optimizer use EmberNIC's modules.
    """
    own_modules(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "script.py").write_text("""
import gen, rtl, torch
bag = torch.nn.EmbeddingBag(100, 16, mode="sum", _weight=torch.ones(100, 16), sparse=True)
optimizer = torch.optim.SGD(bag.parameters(), lr=0.5)
for step in range(2):
    optimizer.zero_grad()
    loss = bag(torch.arange(8), torch.arange(0, 8, 2)).sum()
    loss.backward()
    optimizer.step()
    print(loss.item(), gen.NAME, rtl.NAME)
import host, sim
print(host.NAME, sim.NAME)
raise KeyError("mine")
""")
    alone = run(elsewhere, "../script.py")
    done = on_nics(elsewhere, "../script.py", "--fidelity", "rtl", "--optimizer-on", "nic")
    as_alone(alone, done)
    # Unless another test has compiled the NIC.
    assert "KeyError: 'mine'" in alone.stderr and complaints(done.stderr) == complaints(
        f"{alone.stderr}sim: ../script.py ended with KeyError: 'mine'\n")


@pytest.mark.thorough
def test_a_script_without_such_modules_gets_embernics(tmp_path):
    (tmp_path / "script.py").write_text(
        "import torch\nfrom sim.torch.modules import NicEmbeddingBag\n"
        "print(NicEmbeddingBag(9, 4)(torch.arange(2), torch.arange(2)).shape)\n"
        "import gen.base.signals, sys\n"
        "print(sys.modules['gen.base.signals'].Interrupted.__name__)\n")
    done = on_nics(tmp_path, "script.py")
    assert done.stdout.startswith("torch.Size([2, 4])\nInterrupted\n"), done.stderr


@pytest.mark.parametrize("command", ["sim", "gen", "gen.documents", "host.calibrate"])
@pytest.mark.parametrize("name", ["rtl", "google_crc32c"])
def test_a_folder_that_hides_a_package(tmp_path, command, name):
    (tmp_path / f"{name}.py").write_text("raise OSError\n")
    done = run(tmp_path, "-m", command, "--help")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        f"{command.partition('.')[0]}: {tmp_path / name}.py hides the package {name}, which "
        f"EmberNIC needs: run the command in another folder, or with python -P -m\n")


@pytest.mark.thorough
def test_a_folder_that_hides_a_package_is_left_out_with_p(tmp_path):
    (tmp_path / "gen.py").write_text("raise OSError\n")
    done = run(tmp_path, "-P", "-m", "sim", "torch", "none.py")
    assert done.returncode == 2 and re.fullmatch("sim: script .*\n", done.stderr)


def test_one_attach_at_a_time():
    """PyTorch is unchanged after the last context, however it ends."""
    patched = torch.compile, threading.Thread._bootstrap, threading.Thread.start
    bag = torch.nn.EmbeddingBag(100, 16, mode="sum")
    inside, over, found = threading.Event(), threading.Event(), []

    def first():
        with api.attach(nodes=2) as program:
            inside.set()
            over.wait(30)
            bag(torch.arange(8), torch.arange(0, 8, 2))
        found.append(program.result)

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait(30)
    with pytest.raises(RuntimeError, match=r"^only one sim\.api\.attach or sim torch can run"):
        with api.attach(nodes=2):
            pass
    over.set(), thread.join()
    assert found[0]["mini_batches"]["inference"]["lookups"] == 8
    with pytest.raises(KeyError), api.attach(nodes=2):
        raise KeyError
    with api.attach(nodes=2):
        bag(torch.arange(8), torch.arange(0, 8, 2))
    assert (torch.compile, threading.Thread._bootstrap, threading.Thread.start) == patched
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
