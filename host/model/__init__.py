"""Models: the shape of a DLRM, and models by name."""

from host.model.blocks import blocks_text, rows_of_block, with_blocks, without_blocks
from host.model.columns import (
    are_slices,
    columns_of,
    columns_text,
    sliced,
    table_label,
    with_columns,
    without_columns,
)
from host.model.load import (
    AVAZU_ROWS,
    KAGGLE_ROWS,
    MODELS,
    TERABYTE_ROWS,
    TableFile,
    load_model,
    model_files,
    model_names,
    table_names,
)
from host.model.shape import INTERACTIONS, MOST_VALUES, POOLINGS, RULES, Model, padded

__all__ = ["AVAZU_ROWS", "INTERACTIONS", "KAGGLE_ROWS", "MODELS", "MOST_VALUES", "POOLINGS",
           "RULES", "TERABYTE_ROWS", "Model", "TableFile", "are_slices", "blocks_text",
           "columns_of", "columns_text", "load_model", "model_files", "model_names", "padded",
           "rows_of_block", "sliced", "table_label", "table_names", "with_blocks", "with_columns",
           "without_blocks", "without_columns"]
