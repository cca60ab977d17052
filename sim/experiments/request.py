"""The setting that the options of ``reproduce`` select, and the options in words."""

from collections.abc import Sequence
from dataclasses import replace

from host.data.datasets import EXACT
from host.hashing import check_seed
from host.model import load_model
from sim.evaluation.fields import DATASETS
from sim.evaluation.setting import DEMO, SETTINGS, Setting, Source, like, samples_of

__all__ = ["command_of", "seeds_of", "setting_of"]

_DATASET_OF = {"criteo": "kaggle", "avazu": "avazu", "dlrm-npz": "kaggle"}
"""Default data set of a file format."""


_MOST_SEEDS = 1000


def command_of(model: str | None, data: Sequence[str], format: str | None, fidelity: str, gpu: str,
               seeds: Sequence[int], rtl_points: bool, demo: bool,
               setting: str = "reference") -> str:
    """Return the command-line options for the page."""
    said = "".join(f" --{name} {value}" for name, value in (
        ("model", model), *(("data", path) for path in data), ("format", format)) if value)
    if setting != "reference":
        said += f" --setting {setting}"
    if fidelity != "model":
        said += f" --fidelity {fidelity}"
    if gpu != Setting.gpu:
        said += f" --gpu {gpu}"
    if tuple(seeds) != Setting.seeds:
        said += f" --seed {seeds[0]}" if len(seeds) == 1 else (
            f" --seeds {','.join(map(str, seeds))}")
    if not rtl_points:
        said += " --no-rtl-points"
    return said + (" --demo" if demo else "")


def seeds_of(seed: int, seeds: int | Sequence[int]) -> tuple[int, ...]:
    """Return the seeds: a number of them starting at ``seed``, or a list.

    Raises ``ValueError`` for an empty list, a duplicate, and a seed that does not fit in 64 bits.
    """
    if isinstance(seeds, int) and seeds < 1:
        raise ValueError(f"seeds must be at least 1, not {seeds!r}")
    if isinstance(seeds, int) and seeds > _MOST_SEEDS:
        raise ValueError(f"seeds must be at most {_MOST_SEEDS:,}, not {seeds!r}")
    found = tuple(range(seed, seed + seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not found or min(found) < 0 or len(set(found)) < len(found):
        raise ValueError(f"seeds must be distinct non-negative integers, "
                         f"not {','.join(map(str, found))!r}")
    for seed in found:
        check_seed(seed)
    return found


def setting_of(model: str | None = None, data: str | tuple[str, ...] | None = None,
               format: str | None = None, fidelity: str = "model", gpu: str = Setting.gpu,
               seeds: tuple[int, ...] = Setting.seeds, demo: bool = False,
               name: str = "reference") -> Setting:
    """Return the setting that these options select.

    ``data`` replaces the generator for the data set ``model``, by default the format's. The files
    are read as far as the evaluation needs; a short file gives fewer mini-batches.
    ``name``: of :data:`sim.evaluation.setting.SETTINGS`.

    Raises ``ValueError`` and :class:`host.errors.InputError`.
    """
    if name not in SETTINGS:
        raise ValueError(f"setting must be one of {', '.join(SETTINGS)}, not {name!r}")
    setting = replace(like(DEMO if demo else Setting(), name), fidelity=fidelity, gpu=gpu,
                      seeds=seeds)
    if model is not None:
        load_model(model)
    if data is None:
        if format is not None:
            raise ValueError(f"format must go with data, not {format!r} alone")
        return setting if model is None else replace(setting, datasets=(model,))
    source = Source.of(data, format)
    kind = source.format or ""
    dataset = model or _DATASET_OF.get(kind.removesuffix(EXACT))
    if dataset is None:
        raise ValueError(f"model must be given with the format {kind}: one of "
                         f"{', '.join(DATASETS)}")
    datasets = (dataset,) if demo else setting.datasets
    setting = replace(setting, datasets=datasets, sources=((dataset, source),))
    _check_length(setting, dataset)
    return setting


def _check_length(setting: Setting, dataset: str) -> None:
    """Raise ``ValueError`` if the files hold fewer than two mini-batches."""
    least = 2 * setting.mini_batch(dataset)
    found = len(samples_of(setting, dataset, least))
    if found < least:
        raise ValueError(f"data must have at least {least:,} samples of {dataset}, two "
                         f"mini-batches, not {found:,}")
