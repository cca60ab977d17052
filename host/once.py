"""Functions of an object that compute each result once."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

__all__ = ["once"]


class _Keeper(Protocol):
    """Keeps results of functions."""

    @property
    def found(self) -> dict[Hashable, Any]:
        """Results by function and arguments."""
        ...


_K, _P, _R = TypeVar("_K", bound=_Keeper), ParamSpec("_P"), TypeVar("_R")


def once(function: Callable[Concatenate[_K, _P], _R]) -> Callable[Concatenate[_K, _P], _R]:
    """Let a function of an object, such as a trace, and of hashable values compute each result
    once. The results live as long as the object, in its ``found``. Callers must not change them."""
    @wraps(function)
    def kept(keeper: _K, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        key = (function, args, tuple(kwargs.items()))
        if key not in keeper.found:
            keeper.found[key] = function(keeper, *args, **kwargs)
        return keeper.found[key]

    return kept
