"""Every lookup of a program is caught, or reported with its source line."""

import multiprocessing
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
import torch
from torch.utils.checkpoint import checkpoint

from sim.torch.catching.capture import capturing
from sim.torch.catching.session import Session
from sim.torch.options import TorchOptions
from tests.sim.torch.programs import attached_to

BAG = torch.nn.EmbeddingBag(20, 16, mode="sum")
KEYS, OFFSETS = torch.arange(6), torch.arange(0, 6, 2)


def lookups(session) -> list[int]:
    return [step["lookups"] for step in session.record.steps]


def test_lookups_that_are_not_caught_have_a_place():
    table, most = torch.nn.Embedding(9, 4), torch.nn.EmbeddingBag(9, 4, mode="max")

    def program():
        BAG(KEYS, OFFSETS)
        for _ in range(3):
            table(KEYS)
        most(KEYS, OFFSETS)

    session, missed = attached_to(program)
    line = program.__code__.co_firstlineno
    assert missed == {
        (f"{__file__}:{line + 3}",
         "aten::embedding is not caught: no NIC serves this operator"): 3,
        (f"{__file__}:{line + 4}", "aten::_embedding_bag is not caught: "
         "the NIC pools as sum or mean, not max"): 1}
    assert lookups(session) == [6]
    assert session.tables.all[0].place == f"{__file__}:{line + 1}"


def test_compiled_lookups_are_caught_or_said():
    table = torch.nn.Embedding(9, 4)
    bags = torch.compile(lambda: BAG(KEYS, OFFSETS) * 2, backend="eager")
    rows = torch.compile(lambda: table(KEYS) * 2, backend="eager")
    before = bags()
    rows()
    after = []
    session, missed = attached_to(lambda: after.extend((bags(), rows())))
    assert torch.equal(before, after[0]) and lookups(session) == [6]
    assert [what for _, what in missed] == [
        "aten::embedding is not caught: no NIC serves this operator"]


def test_compiled_whole():
    whole = torch.compile(lambda: BAG(KEYS, OFFSETS) * 2, fullgraph=True)
    session, missed = attached_to(whole)
    assert lookups(session) == [6] and not missed


@pytest.mark.thorough
@pytest.mark.parametrize("known", [False, True])
def test_a_program_that_compiles_first_when_it_is_caught(known):
    # In a separate process, which has not used the compiler.
    code = f"""
import torch
from sim.torch.catching.eager import eager
{"import torch._dynamo" if known else ""}
compile = torch.compile
with eager():
    whole = torch.compile(lambda x: x + 1, fullgraph=True)
    assert whole(1) == 2
    assert torch.compiler.is_compiling() is False
import sys
assert torch.compile is compile and "torch._dynamo" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200)


def test_inference_mode_and_no_grad():
    out = []

    def program():
        for mode in (torch.inference_mode, torch.no_grad):
            with mode():
                out.append(BAG(KEYS.int(), OFFSETS.int()) + 0)

    session, missed = attached_to(program, fidelity="rtl")
    assert not missed and lookups(session) == [6, 6]
    assert all(torch.equal(each, BAG(KEYS, OFFSETS)) for each in out)


class OfItsOwn(threading.Thread):
    """A thread that overrides ``run``."""

    def run(self):
        BAG(KEYS, OFFSETS)


@pytest.mark.parametrize("thread", [
    lambda: threading.Thread(target=BAG, args=(KEYS, OFFSETS)), OfItsOwn,
    lambda: threading.Timer(0, BAG, (KEYS, OFFSETS))])
def test_threads_that_the_program_begins(thread):
    def program():
        threads = [thread() for _ in range(3)]
        for each in threads:
            each.start()
            each.join()

    start = threading.Thread.start
    session, missed = attached_to(program)
    assert sum(lookups(session)) == 18 and not missed and threading.Thread.start is start


def test_a_pool_of_threads_that_was_there_before():
    def program():
        BAG(KEYS, OFFSETS)
        pool.submit(lambda: BAG(KEYS, OFFSETS)).result()
        with ThreadPoolExecutor(1) as own:
            own.submit(BAG, KEYS, OFFSETS).result()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        session, missed = attached_to(program)
    assert sum(lookups(session)) == 12 and missed == {
        (f"{__file__}:{program.__code__.co_firstlineno + 2}",
         "torch.nn.modules.sparse.EmbeddingBag is not caught: its thread was not started by "
         "the program with threading"): 1}


def test_a_thread_that_outlives_the_program():
    begun, over = threading.Event(), threading.Event()

    def late():
        begun.set()
        over.wait(60)
        BAG(KEYS, OFFSETS)

    def program():
        threads.append(threading.Thread(target=late))
        threads[0].start()
        begun.wait(60)
        BAG(KEYS, OFFSETS)

    threads: list[threading.Thread] = []
    session, _ = attached_to(program)
    over.set()
    threads[0].join()
    assert lookups(session) == [6]


def test_a_process_that_is_forked_says_what_it_looks_up():
    def program():
        BAG(KEYS, OFFSETS)
        process = multiprocessing.get_context("fork").Process(target=forked)
        process.start()
        process.join(60)
        assert process.exitcode == 0

    def forked():
        torch.set_num_threads(1)
        BAG(KEYS, OFFSETS)

    said = multiprocessing.get_context("fork").SimpleQueue()
    session = Session(TorchOptions(nodes=2))
    with capturing(session, said.put) as capture:
        program()
    assert said.get() == (f"{__file__}:{forked.__code__.co_firstlineno + 2}: aten::_embedding_bag "
                          f"is not caught: it is in another process")
    session.finish()
    assert lookups(session) == [6] and not capture.missed


@torch.jit.script
def forked_by_torchscript(weight: torch.Tensor, keys: torch.Tensor, offsets: torch.Tensor):
    later = torch.jit.fork(torch.nn.functional.embedding_bag, keys, weight, offsets)
    return torch.jit.wait(later)


class Twice(torch.nn.Module):
    """Two bags of the same table, whose vectors are recomputed in the backward pass."""

    def __init__(self):
        super().__init__()
        self.bag = BAG

    def forward(self, keys, offsets):
        return checkpoint(self.bag, keys, offsets, use_reentrant=False)


SCRIPTED, TRACED = torch.jit.script(BAG), torch.jit.trace(BAG, (KEYS, OFFSETS))


@pytest.mark.parametrize(("call", "found"), [
    (lambda: SCRIPTED(KEYS, OFFSETS), 6), (lambda: TRACED(KEYS, OFFSETS), 6),
    (lambda: torch.jit.script(torch.nn.EmbeddingBag(20, 16))(KEYS, OFFSETS), 6),
    (lambda: forked_by_torchscript(BAG.weight, KEYS, OFFSETS), 6),
    (lambda: torch.nn.DataParallel(BAG)(KEYS, OFFSETS), 6),
    (lambda: torch.vmap(lambda keys: BAG(keys, OFFSETS))(torch.stack([KEYS, KEYS + 1])), 12),
    (lambda: torch.func.grad(lambda weights: torch.func.functional_call(
        BAG, weights, (KEYS, OFFSETS)).sum())(dict(BAG.named_parameters())), 6),
    (lambda: Twice()(KEYS, OFFSETS).sum().backward(), 12),
    (lambda: [each.backward() for each in [BAG(KEYS, OFFSETS).sum(), BAG(KEYS, OFFSETS).sum()]],
     12),
    (lambda: torch.compile(BAG)(KEYS, OFFSETS), 6),
], ids=["scripted", "traced", "scripted inside", "torch.jit.fork", "DataParallel", "vmap",
        "torch.func", "checkpoint", "backward", "torch.compile"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_however_a_module_is_called(call, found):
    session, missed = attached_to(call)
    assert sum(lookups(session)) == found and not missed


def test_gradients_in_threads_of_their_own():
    def program():
        sums = [BAG(KEYS + place, OFFSETS).sum() for place in range(2)]
        threads = [threading.Thread(target=each.backward) for each in sums]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    session, missed = attached_to(program)
    assert session.gradients == 6 and not missed


def test_the_nics_may_run_in_threads_of_their_own():
    session, _ = attached_to(lambda: BAG(KEYS, OFFSETS) + 1, fidelity="rtl", threads=2)
    assert session.verdicts == {"equal": 3, "different": 0}


@pytest.mark.parametrize("take", [
    lambda out: out.numpy(), lambda out: out.tolist(), lambda out: out.view(-1)[3].item(),
    lambda out: torch.stack([out, out]), lambda out: out.add_(1)])
def test_whatever_reads_a_vector_reads_the_nics(take):
    with torch.no_grad():
        session, _ = attached_to(lambda: take(BAG(KEYS, OFFSETS)), fidelity="rtl")
    assert session.verdicts == {"equal": 3, "different": 0}


def test_a_backward_pass_of_several_forward_passes():
    def program():
        (BAG(KEYS, OFFSETS).sum() + BAG(KEYS + 1, OFFSETS).sum()).backward()

    session, missed = attached_to(program)
    assert not missed and session.gradients == 6 and lookups(session) == [6, 6]


def test_a_gradient_whose_forward_pass_was_not_caught():
    out = BAG(KEYS, OFFSETS).sum()

    def program():
        out.backward()
        BAG(KEYS, OFFSETS)

    session, missed = attached_to(program)
    assert [what for _, what in missed] == [
        "aten::_embedding_bag_backward is not caught: its forward pass was not caught"]
    assert session.gradients == 0
