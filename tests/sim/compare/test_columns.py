"""Column slices in comparisons: the same bytes of vectors, and keys for each owner of a slice."""

import pytest

from sim import api
from tests.sim.inputs import SMALL

MODEL = f"""
name = "wide"
{SMALL}[[tables]]
rows = 20_000
bag = 4
[[tables]]
rows = 30_000
bag = 2
"""
FIXED = ["copied_rows=0", "bags_once=false", "dedupe=false", "key_bytes=4"]
ALONE = ["threads=1", "ring=false", "reads=false", "completion=true", "patient=false",
         "deliver=unique", "pool=owner"]
SAMPLES, KEYS = 32, 4


@pytest.fixture
def compared(tmp_path):
    def found(**more) -> dict:
        path = tmp_path / "model.toml"
        path.write_text(MODEL)
        return api.compare(model=path, cluster="h100", nodes=2, mini_batch=SAMPLES, measured=2,
                           fixed=[*FIXED, *ALONE], **more)

    return found


def test_each_owner_of_a_slice_gets_the_keys(compared):
    """Half of the samples are at the other node than a table."""
    whole, slices = compared(system=["bl-tuned", "en"], placement="0,1"), compared(
        system=["bl-tuned", "en"], placement="0,1,1", columns="0:16")
    plain, cut = ({row["system"]: row for row in each["systems"]} for each in (whole, slices))
    assert all(row["why"] is None for row in (*plain.values(), *cut.values()))
    assert (whole["columns"], slices["columns"]) == (None, "0:16")
    more = cut["bl-tuned"]["network_bytes_per_sample"] - plain["bl-tuned"][
        "network_bytes_per_sample"]
    # The keys and the offset of a bag, of 4 bytes, once more.
    assert more == pytest.approx(4 * (KEYS + 1) / 2, rel=1e-6)
    tables = cut["en"]["tables"]
    assert [(row["table"], row["columns"], row["pool"]) for row in tables] == [
        (0, (0, 15), "owner"), (0, (16, 31), "owner"), (1, None, "owner")]
    assert [row["foreign_keys"] for row in tables[:2]] == [KEYS * SAMPLES / 2] * 2
    assert [row["owner_bytes"] - plain["en"]["tables"][0]["owner_bytes"]
            for row in tables[:2]] == [-4 * 16 * SAMPLES / 2] * 2


def test_interactions_and_trainings_have_no_slices(compared):
    with pytest.raises(ValueError, match="columns must be left out in training, not '0:16': NICs "
                                         "do not train slices"):
        compared(columns="0:16", training=True)
    with pytest.raises(ValueError, match="columns of table 0 must be a multiple of 32, the values "
                                         "of a beat, not 16"):
        compared(columns="0:16", wire="float16")
