"""A malformed file is named with the place: line and column, or array and index."""

from collections import Counter

import pytest

from host.datasets import FORMATS, default_model, open_samples
from host.errors import InputError

from .files import write
from .malformed import CASES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_malformed_file(tmp_path, case):
    path = write(tmp_path / "file", case.content)
    with pytest.raises(InputError) as caught:
        for _ in open_samples(path, case.format, default_model(path, case.format)):
            pass
    assert str(caught.value).startswith(f"{path}{case.said}")
    assert "\n" not in str(caught.value)


def test_every_format_is_malformed_in_five_ways():
    count = Counter(case.format for case in CASES)
    assert set(count) == set(FORMATS) and min(count.values()) >= 5
