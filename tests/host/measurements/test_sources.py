"""Sources are split: a source that checks a model chooses no constant."""

import tomllib
from dataclasses import replace
from importlib.resources import files

import pytest

from host.errors import InputError
from host.measurements.published import drop, flattening, flattening_v3_1, inference, kernel_rows
from host.measurements.sources import Source, Sources, sources
from host.toml.profile import profile_names
from host.toml.schema import read_toml


def _texts(value: object, path: str = ""):
    """Yield the path and the text of each ``source`` in a profile."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]")
    elif isinstance(value, str):
        yield path, value


@pytest.mark.parametrize("name", profile_names())
def test_no_constant_comes_from_what_models_are_checked_against(name):
    text = (files("host") / "profiles" / f"{name}.toml").read_text()
    for path, source in _texts(tomllib.loads(text)):
        found = sources().check_only(source)
        assert found is None, f"{name}{path} is from {found.name}, which only checks the models"
    assert sources().check_only(text) is None  # a comment does not mark it either


@pytest.mark.parametrize("source", [source for source in sources().checks],
                         ids=lambda source: source.name)
def test_a_constant_from_such_a_source_would_be_found(source):
    for words in source.cite:
        assert sources().check_only(f"[S] as in {words.upper()}, table 2").named_in(words)


def test_the_split_names_where_and_under_which_licence():
    found = sources()
    assert found.split == "2026-11-23"
    assert all(each.where and each.licence and each.what
               for each in (*found.constants, *found.checks))
    assert {"V100 step", "V100 kernel rows", "V100 inference",
            "MLPerf Training v3.0, DLRM-DCNv2", "dlrm issue 356"} <= {
                each.name for each in found.checks}


def test_what_was_measured_is_on_the_side_of_checks():
    for data in (kernel_rows(), inference(), flattening(), flattening_v3_1(), drop()):
        assert sources().of_check(data.source).name == data.source


def test_sources_that_constants_come_from_are_not_check_only():
    assert all(sources().check_only(word) is None
               for each in sources().constants for word in each.cite)


def test_a_malformed_split_is_refused(tmp_path):
    one = Source("a", "what", "where", "MIT", ("a",))
    with pytest.raises(ValueError, match=r"split must be a day such as 2026-11-23, not 'May'"):
        Sources("May", (one,), ())
    with pytest.raises(ValueError, match="checks must have names"):
        Sources("2026-11-23", (one,), (one,))
    with pytest.raises(ValueError, match="cite must be"):
        replace(one, cite=())
    path = tmp_path / "sources.toml"
    path.write_text('split = "soon"\nconstants = []\nchecks = []\n')
    with pytest.raises(InputError, match="split must be a day"):
        read_toml(path, Sources)
