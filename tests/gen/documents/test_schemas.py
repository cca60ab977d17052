"""JSON and XML that ``gen`` writes match their schemas, and a mistake in them does not."""

import json
from functools import partial

import pytest

from gen.documents.generate import generate
from gen.documents.write import documents
from gen.netlist.report import report_resources
from gen.shells.vitis_files import kernel_xml
from gen.timing.report import report_timing
from rtl.config import preset
from rtl.memory import MemoryMaster
from tests.gen.designs import Bank, Inner
from tests.gen.schemas import FOLDER, check_json, check_kernel_xml
from tests.gen.timing.reports import small_report

BY_HAND = json.dumps(small_report("tiny"))
MASTERS = [MemoryMaster("mem0", 17, 512), MemoryMaster("rows", 3, 256)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return the description and report of small designs, and the registers of ``tiny``, by
    schema."""
    folder = tmp_path_factory.mktemp("written")

    def build(config):
        bank = Bank()
        bank.masters = MASTERS
        return bank

    generate(preset("tiny"), folder / "bank", build=build)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gen.netlist.report.report_resources",
                        partial(report_resources, whole=True))
        generate(preset("tiny"), folder / "inner", build=lambda _config: Inner(), report=True)
        patched.setattr("gen.timing.report.report_timing", partial(report_timing, whole=True))
        generate(preset("tiny"), folder / "timed", build=lambda _config: Bank(), timing=True)
    return {"description": (folder / "bank" / "tiny.json").read_text(),
            "report": (folder / "inner" / "tiny.report.json").read_text(),
            "timing": (folder / "timed" / "tiny.timing.json").read_text(),
            "registers": documents("tiny")["registers.json"]}


@pytest.mark.thorough
def test_every_schema_has_a_document(written):
    assert {path.name for path in FOLDER.iterdir()} == {
        f"{name}.schema.json" for name in written}


def test_a_timing_report_by_hand():
    """The report by hand, which other tests use, matches the schema."""
    check_json(BY_HAND, "timing")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["description", "report", "registers", "timing"])
def test_json(written, name):
    check_json(written[name], name)


def places(value, path=()):
    """Yield the path of every object in ``value``."""
    if isinstance(value, dict):
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, key))


@pytest.mark.thorough
@pytest.mark.parametrize("name, text", [
    ("description", "description"), ("report", "report"), ("registers", "registers"),
    ("timing", "by hand")])
def test_json_with_a_mistake(written, name, text):
    """Add a member, or change the type of a member, in the first object of each kind."""
    from jsonschema import ValidationError

    text = written.get(text, BY_HAND)
    document = json.loads(text)
    tried = set()
    for path in places(document):
        sort = tuple(0 if isinstance(key, int) else key for key in path)
        if sort in tried:
            continue
        tried.add(sort)
        for change in (lambda inner: inner.update(colour=[1]),
                       lambda inner: inner.update({next(iter(inner)): {}}),
                       lambda inner: inner.pop(next(iter(inner)))):
            wrong = json.loads(text)
            inner = wrong
            for key in path:
                inner = inner[key]
            change(inner)
            with pytest.raises(ValidationError):
                check_json(json.dumps(wrong), name)
    assert len(tried) > 2


@pytest.mark.parametrize("masters", [(), MASTERS])
def test_kernel_xml(masters):
    check_kernel_xml(kernel_xml("tiny_vitis", masters))


@pytest.mark.parametrize("old, new", [
    ('name="packets" ', ""), ('id="5"', 'id="4"'), ('port="m_axi_mem0"', 'port="m_axi_mem9"'),
    ('dataWidth="256"', 'dataWidth="260"'), ("ap_ctrl_hs", "ap_ctrl_xs"),
    ('portType="stream"', 'portType="pipe"'), ('addressQualifier="1"', 'addressQualifier="7"'),
    ('offset="0x18"', 'offset="24"'), ('name="m_axi_rows"', 'name="m_axi_mem0"'),
    ("<args>", "<args><register />"), ('mode="master"', 'mode="master" colour="red"')])
def test_kernel_xml_with_a_mistake(old, new):
    from xmlschema import XMLSchemaValidationError

    text = kernel_xml("tiny_vitis", MASTERS)
    assert old in text
    with pytest.raises(XMLSchemaValidationError):
        check_kernel_xml(text.replace(old, new, 1))
