"""Every lookup of a program is caught, or said with its place."""

import threading

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
import torch

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


def test_inference_mode_and_no_grad():
    out = []

    def program():
        for mode in (torch.inference_mode, torch.no_grad):
            with mode():
                out.append(BAG(KEYS.int(), OFFSETS.int()) + 0)

    session, missed = attached_to(program, fidelity="rtl")
    assert not missed and lookups(session) == [6, 6]
    assert all(torch.equal(each, BAG(KEYS, OFFSETS)) for each in out)


def test_threads_that_the_program_begins():
    def program():
        threads = [threading.Thread(target=lambda: BAG(KEYS, OFFSETS)) for _ in range(3)]
        for each in threads:
            each.start()
            each.join()

    run = threading.Thread.run
    session, _ = attached_to(program)
    assert sum(lookups(session)) == 18 and threading.Thread.run is run


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
