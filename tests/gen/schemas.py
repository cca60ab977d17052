"""Schema checks of the files that ``gen`` writes: JSON by the shipped schemas, XML by AMD's."""

import json
from pathlib import Path

import gen

FOLDER = Path(gen.__file__).parent / "documents" / "schemas"
KERNEL = Path(__file__).parent / "shells" / "kernel.xsd"


def check_json(text: str, name: str) -> None:
    """Raise ``jsonschema.ValidationError`` unless ``text`` matches schema ``name`` of
    ``gen/documents/schemas``."""
    from jsonschema import Draft202012Validator

    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads(text))


def check_kernel_xml(text: str) -> None:
    """Raise ``xmlschema.XMLSchemaValidationError`` unless ``text`` is a kernel.xml."""
    import xmlschema

    xmlschema.XMLSchema(str(KERNEL)).validate(text)
