"""Weights of keys in comparisons: their bytes, and the systems that may pool weighted bags."""

import pytest

from sim import api
from tests.sim.inputs import SMALL

WEIGHTED = f"""
name = "weighted"
{SMALL}[[tables]]
count = 2
rows = 20_000
bag = [1, 9]
weighted = true
[[tables]]
rows = 30_000
bag = [1, 9]
"""
PLAIN = WEIGHTED.replace("weighted = true", "")
FIXED = ["copied_rows=0", "bags_once=false", "dedupe=false", "key_bytes=4"]
ALONE = ["threads=1", "ring=false", "reads=false", "completion=true", "patient=false"]


@pytest.fixture
def found(tmp_path):
    def compared(text: str, system: list[str], placement: str = "0,1,1", **more) -> dict[str, dict]:
        path = tmp_path / "model.toml"
        path.write_text(text)
        result = api.compare(model=path, cluster="h100", nodes=2, mini_batch=32, measured=2,
                             system=system, placement=placement, **more)
        return {row["system"]: row for row in result["systems"]}

    return compared


def test_a_weight_is_four_bytes_beside_its_key(found):
    plain, weighted = (found(text, ["bl-tuned", "bl-paper"], fixed=FIXED)
                       for text in (PLAIN, WEIGHTED))
    # 5 keys on average in each of two tables, half of them at the other node.
    for system, each in weighted.items():
        more = each["network_bytes_per_sample"] - plain[system]["network_bytes_per_sample"]
        assert more == pytest.approx(4 * 2 * 5 / 2, rel=0.15), system
        assert each["interval_us"] >= plain[system]["interval_us"]


def test_nics_pool_weighted_bags_at_their_owner_or_gpus_pool_them(found):
    rows = found(WEIGHTED, ["en", "fs"], fixed=[
        *ALONE, "copied_rows=0", "deliver=pooled"])
    assert {table["pool"] for table in rows["en"]["tables"][:2]} == {"owner"}
    assert {table["pool"] for table in rows["fs"]["tables"][:2]} == {"owner"}
    unique = found(WEIGHTED, ["en"], fixed=[
        *ALONE, "deliver=unique", "pool=requester"])["en"]
    assert unique["why"] is None
    at_requester = found(WEIGHTED, ["en", "fs"], fixed=[
        *ALONE, "copied_rows=0", "deliver=pooled", "pool=requester"])
    for row in at_requester.values():
        assert row["why"] == (
            "table 0 has weights, which NICs do not multiply: its bags must pool at its owner, or "
            "GPUs must pool (deliver=unique)")


def test_training_with_weights_is_refused(found):
    with pytest.raises(ValueError, match=r"^weighted of table 0 must be false in training"):
        found(WEIGHTED, ["bl-paper"], training=True)
