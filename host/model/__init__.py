"""Models: the shape of a DLRM, and models by name."""

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
           "RULES", "TERABYTE_ROWS", "Model", "TableFile", "load_model", "model_files",
           "model_names", "padded", "table_names"]
