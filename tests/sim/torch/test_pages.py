"""docs/pytorch.md: its script runs unedited, and its context prints the shown output."""

import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
import torch

from sim import api
from sim.torch.modules import NicEmbeddingBag
from tests.pages import run_page, script_of


def test_the_page_is_true():
    torch.manual_seed(0)
    assert run_page("pytorch.md") == 1


def test_its_script_runs_on_nics(tmp_path):
    script = tmp_path / "script.py"
    text = script_of("pytorch.md")
    assert len([line for line in text.splitlines() if line.strip()]) <= 15
    script.write_text(text)
    result = api.torch(script, fidelity="rtl", nodes=2, config="tiny")
    assert result["mini_batches"]["training"]["lookups"] == 8 * 3 * 64
    assert result["values"]["results"] == {"equal": 8 * 64, "different": 0}
    assert result["not_caught"] == []


def test_a_module_that_only_nics_look_up():
    torch.manual_seed(1)
    bag = NicEmbeddingBag(20, 16, mode="sum")
    torch.manual_seed(1)
    plain = torch.nn.EmbeddingBag(20, 16, mode="sum")
    keys, offsets = torch.arange(6), torch.tensor([0, 2])
    with pytest.raises(RuntimeError, match=r"^a NicEmbeddingBag must be called inside sim\.api\."):
        bag(keys, offsets)
    with api.attach(nodes=2) as program:
        out = bag(keys, offsets)
        out.sum().backward()
    assert torch.equal(out, plain(keys, offsets)) and bag.weight.grad is not None
    assert program.result["gradients"]["bags"] == 2


@pytest.mark.parametrize(("options", "said"), [
    ({"mode": "max"}, "mode must be sum or mean, not 'max'"),
    ({"dtype": torch.float64}, "dtype must be torch.float32, not torch.float64"),
    ({"device": "meta"}, "device must be cpu, not 'meta'"),
    ({"embedding_dim": 300}, "embedding_dim must be at most 256, not 300"),
])
def test_modules_that_no_nic_serves(options, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        NicEmbeddingBag(**{"num_embeddings": 9, "embedding_dim": 16} | options)
