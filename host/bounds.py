"""Range and choice checks with uniform error messages."""

from collections.abc import Collection

__all__ = ["check_known", "check_least", "check_value"]


def check_value(name: str, value: object, *, least: float | None = None,
                most: float | None = None, among: Collection[str] = ()) -> None:
    """Raise ``ValueError`` for a value out of its bounds; None is always valid.

    name: name of the value in the message.
    least, most: bounds of a number; None is unbounded. NaN is out of any bound.
    among: allowed texts; empty allows every text.
    """
    if value is None:
        return
    if among and value not in among:
        raise _unknown(name, among, value)
    if least is not None and not value >= least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")
    if most is not None and not value <= most:
        raise ValueError(f"{name} must be at most {most}, not {value!r}")


def check_least(owner: object, **least: float) -> None:
    """Raise ``ValueError`` for an attribute of ``owner`` below its bound; None is valid."""
    for name, bound in least.items():
        check_value(name, getattr(owner, name), least=bound)


def check_known(owner: object, **known: Collection[object]) -> None:
    """Raise ``ValueError`` for an attribute of ``owner`` that is not among its allowed values.

    None is valid only if listed.
    """
    for name, among in known.items():
        if (value := getattr(owner, name)) not in among:
            raise _unknown(name, among, value)


def _unknown(name: str, among: Collection[object], value: object) -> ValueError:
    return ValueError(f"{name} must be one of {', '.join(map(str, among))}, not {value!r}")
