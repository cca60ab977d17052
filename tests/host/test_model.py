from dataclasses import replace

import pytest

from host.errors import InputError
from host.model import MODELS, Model, load_model, model_names


def test_presets_agree_with_the_published_shapes():
    kaggle = load_model("kaggle")
    assert (kaggle.tables, sum(kaggle.rows)) == (26, 33_762_577)
    assert kaggle.bottom_layers == ((13, 512), (512, 256), (256, 64), (64, 16))
    assert kaggle.top_layers == ((367, 512), (512, 256), (256, 1))
    terabyte = load_model("terabyte")
    assert (terabyte.tables, sum(terabyte.rows)) == (26, 177_944_275)
    assert terabyte.top_layers[0] == (415, 512)
    avazu = load_model("avazu")
    assert (avazu.tables, avazu.interaction_width) == (21, 247)
    assert load_model("movielens").rows == (611, 193610)


def test_toml_gives_the_same_model(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text('name = "small"\nrows = [10, 20]\ndimension = 32\ndense = 2\n'
                    "bottom = [8, 32]\ntop = [4, 1]\n")
    assert load_model(path) == Model((10, 20), 32, 2, (8, 32), (4, 1), "small")


def test_the_interaction_of_a_file(tmp_path):
    path = tmp_path / "small.toml"
    base = 'rows = [10, 20, 30]\ndimension = 8\ndense = 2\nbottom = [8]\ntop = [4, 1]\n'
    for lines, kind, itself, width in (
            ("", "dot", False, 8 + 6), ("interaction_itself = true\n", "dot", True, 8 + 10),
            ('interaction = "cat"\n', "cat", False, 32)):
        path.write_text(base + lines)
        model = load_model(path)
        assert (model.interaction, model.interaction_itself) == (kind, itself)
        assert model.interaction_width == width and model.top_layers[0] == (width, 4)
    path.write_text(base + 'interaction = "mean"\n')
    with pytest.raises(InputError, match=r"toml: interaction must be dot or cat, not 'mean'"):
        load_model(path)


@pytest.mark.parametrize("change, message", [
    ({"dimension": 257}, "dimension must be between 1 and 256, not 257"),
    ({"dimension": 0}, "dimension must be between 1 and 256, not 0"),
    ({"dimension": 16.0}, "dimension must be an integer, not 16.0"),
    ({"rows": (10, 0)}, r"rows\[1\] must be between 1 and 68719476735, not 0"),
    ({"rows": ()}, r"rows \(number of tables\) must be between 1 and 4096, not 0"),
    ({"rows": [10]}, r"rows must be a tuple of integers, not \[10\]"),
    ({"bottom": (8,)}, r"bottom must end in the dimension, 16, not \(8,\)"),
    ({"top": (4, 2)}, r"top must end in 1, not \(4, 2\)"),
    ({"dense": 0}, "dense must be between 1 and 65536, not 0"),
    ({"name": 3}, "name must be a string, not 3"),
    ({"dimensions": (16,)}, r"dimensions must have 2 entries, one per table, not \(16,\)"),
    ({"dimensions": (16, 257), "interaction": "cat"},
     r"dimensions\[1\] must be between 1 and 256, not 257"),
    ({"dimensions": (16, 32)}, r"dimensions\[1\] must be that of the model, 16, for the "
     "interaction dot, not 32: use the interaction cat"),
    ({"poolings": ("sum", "max")}, r"poolings\[1\] must be sum or mean, not 'max'"),
    ({"interaction": "sum"}, "interaction must be dot or cat, not 'sum'"),
    ({"interaction_itself": 1}, "interaction_itself must be true or false, not 1"),
    ({"interaction": "cat", "interaction_itself": True},
     "interaction_itself must go with the interaction dot, not 'cat'"),
])
def test_bad_shapes_are_refused(change, message):
    good = {"rows": (10, 20), "dimension": 16, "dense": 1, "bottom": (16,), "top": (1,)}
    with pytest.raises((TypeError, ValueError), match=message + "$"):
        Model(**(good | change))


TABLES = """dimension = 16
dense = 2
bottom = [16]
top = [1]
[[tables]]
name = "user"
rows = 10
[[tables]]
rows = 20
bag = [0, 3]
[[tables]]
rows = 30
bag = 2
pooling = "sum"
dimension = 16
"""


def test_tables_with_bags(tmp_path):
    path = tmp_path / "bags.toml"
    path.write_text(TABLES)
    assert load_model(path) == Model((10, 20, 30), 16, 2, (16,), (1,), bags=(
        (1, 1), (0, 3), (2, 2)))
    path.write_text(TABLES.split("bag = ")[0])
    assert load_model(path) == Model((10, 20), 16, 2, (16,), (1,))


@pytest.mark.parametrize("old, new, message", [
    ('pooling = "sum"', 'pooling = "max"', "tables[2]: pooling must be sum or mean, not 'max'"),
    ('"sum"\ndimension = 16', '"sum"\ndimension = 32',
     "tables[2].dimension must be that of the model, 16, for the interaction dot, not 32: "
     'use interaction = "cat"'),
    ('"sum"\ndimension = 16', '"sum"\ndimension = 257',
     "tables[2]: dimension must be between 1 and 256, not 257"),
    ("rows = 20", "rows = 0", "tables[1]: rows must be between 1 and 68719476735, not 0"),
    ("bag = 2", "bag = -1", "tables[2]: bag must be between 0 and 4096, not -1"),
    ("[0, 3]", "[3, 0]", "tables[1]: bag must give the minimum first, not (3, 0)"),
    ("[0, 3]", "[3]", "tables[1]: bag must have 2 items, not [3]"),
    ("top = [1]", "top = [2]", "top must end in 1, not (2,)"),
    ("top = [1]", "top = [1]\nrows = [1]", "rows and tables must not both be given"),
    ("rows = 10", "row = 10",
     "tables[0]: no such field: row (fields: rows, name, bag, count, request,"),
])
def test_mistakes_in_tables(tmp_path, old, new, message):
    path = tmp_path / "bags.toml"
    path.write_text(TABLES.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_tables_of_their_own_dimension_and_pooling(tmp_path):
    path = tmp_path / "mixed.toml"
    mixed = TABLES.replace('"sum"\ndimension = 16', '"mean"\ndimension = 32').replace(
        "top = [1]", 'top = [1]\ninteraction = "cat"')
    path.write_text(mixed.replace("rows = 20", "rows = 20\ndimension = 4"))
    model = load_model(path)
    assert model == Model((10, 20, 30), 16, 2, (16,), (1,), bags=((1, 1), (0, 3), (2, 2)),
                          interaction="cat", dimensions=(16, 4, 32),
                          poolings=("sum", "sum", "mean"))
    assert model.mixed and (model.width, model.nic_pooling) == (32, "sum")
    assert model.interaction_width == 16 + 16 + 4 + 32
    assert model.padding == (
        "NICs pad vectors of 4 to 32 values with zeros to 32 (on the network, bags pooled at "
        "owners: to a multiple of 16)")
    some = model.with_tables([1, 2], "some")
    assert (some.dimensions, some.poolings, some.bags) == (
        (4, 32), ("sum", "mean"), ((0, 3), (2, 2)))
    alone = model.with_tables([2], "alone")
    assert (alone.dimensions, alone.poolings, alone.pooling, alone.width, alone.padding) == (
        (32,), (), "mean", 32, None)


def test_equal_dimensions_and_poolings_are_the_model_s():
    plain = Model((10, 20), 16, 1, (16,), (1,), pooling="mean")
    same = Model((10, 20), 16, 1, (16,), (1,), dimensions=(16, 16), poolings=("mean", "mean"))
    assert same == plain and hash(same) == hash(plain) and not same.mixed
    assert same.table_dimensions == (16, 16) and (same.width, same.nic_pooling) == (16, "mean")


def test_hosts_may_make_the_means_of_equal_poolings():
    plain = Model((10, 20), 16, 1, (16,), (1,), pooling="mean")
    ours = plain.with_host_means()
    assert (ours.nic_pooling, ours.pooling, ours.poolings) == ("sum", "mean", ())
    assert ours.with_host_means() == ours != plain
    sums = Model((10, 20), 16, 1, (16,), (1,))
    assert sums.with_host_means() == sums


def test_nics_pad_other_dimensions():
    for dimension, width in ((1, 4), (4, 4), (5, 8), (8, 8), (9, 16), (20, 32), (256, 256)):
        model = Model((10, 20), dimension, 1, (dimension,), (1,))
        assert model.width == width and not model.mixed
        assert (model.padding is None) == (width == dimension)
        assert replace(model, interaction="cat").mixed == (width != dimension)
    assert Model((1,), 20, 1, (20,), (1,)).padding == (
        "NICs pad vectors of 20 values with zeros to 32")


def test_pooling_of_a_model_file(tmp_path):
    path = tmp_path / "mean.toml"
    path.write_text('pooling = "mean"\n' + TABLES.replace('"sum"', '"mean"'))
    assert load_model(path).pooling == "mean"
    path.write_text('pooling = "mean"\n' + TABLES.replace('pooling = "sum"\n', ""))
    assert load_model(path).pooling == "mean"
    path.write_text('pooling = "max"\n' + TABLES.replace('pooling = "sum"\n', ""))
    with pytest.raises(InputError, match=r"toml: pooling must be sum or mean, not 'max'$"):
        load_model(path)


def test_models_that_ship_as_files():
    assert set(model_names()) > {*MODELS, "multi_hot"}
    model = load_model("multi_hot")
    assert model.bags[2] == (0, 20) and model.tables == 8
    kaggle = MODELS["kaggle"]
    assert kaggle.mlp_parameters == (
        13 * 512 + 512 * 256 + 256 * 64 + 64 * 16 + 512 + 256 + 64 + 16
        + 367 * 512 + 512 * 256 + 256 + 512 + 256 + 1)


def test_bad_file_and_bad_name(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("rows = [10]\ndimension = 300\ndense = 1\nbottom = [300]\ntop = [1]\n")
    with pytest.raises(InputError, match=r"bad.toml: dimension must be between 1 and 256, not 300"):
        load_model(path)
    with pytest.raises(ValueError, match=r"model must be one of kaggle, .* or a TOML file, not"):
        load_model("nope")
    assert set(MODELS) == {"kaggle", "terabyte", "avazu", "movielens", "trace"}
