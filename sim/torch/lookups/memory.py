"""The memory of a program's tensors: read and written in place, never held."""

import ctypes
from functools import cache

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

__all__ = ["Held", "array_of", "known", "storage_of", "trim"]

_FLOAT32 = np.dtype(np.float32)


@cache
def _numpy_dtype(dtype: torch.dtype) -> np.dtype:
    return torch.empty(0, dtype=dtype).numpy().dtype


class _Memory:
    """What an array shares: ``owner`` keeps it alive."""

    def __init__(self, owner: object, address: int, shape: tuple[int, ...],
                 strides: tuple[int, ...], dtype: np.dtype):
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, False), "shape": shape, "typestr": dtype.str, "version": 3,
            "strides": tuple(stride * dtype.itemsize for stride in strides)}


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """Return an array that shares the memory of a plain tensor on the CPU.

    ``tensor.numpy()`` would forbid the program to resize the tensor's storage from then on. The
    array is valid while the program does not.
    """
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    shape, dtype = tuple(tensor.shape), _numpy_dtype(tensor.dtype)
    if not tensor.numel():
        return np.empty(shape, dtype)
    return np.asarray(_Memory(tensor, tensor.data_ptr(), shape, tensor.stride(), dtype))


def storage_of(tensor: torch.Tensor) -> int:
    """Return a number of a tensor's storage, which stays as it is resized; 0 where it has none.
    Another storage may have the number after its end."""
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return 0


class Held:
    """The place of a float32 tensor in its storage, which this does not keep alive.

    Members: ``known``, a number of the storage, the offset, shape and strides: no other tensor has
    them while this exists.
    """

    def __init__(self, tensor: torch.Tensor):
        self._storage = StorageWeakRef(tensor.untyped_storage())
        self.known = known(tensor)

    @property
    def alive(self) -> bool:
        """Whether the program has the storage still."""
        return not self._storage.expired()

    @property
    def address(self) -> int:
        """The address of the first value; 0 where the storage is gone or too short."""
        return self._found()[1]

    @property
    def values(self) -> np.ndarray:
        """The values, in the program's memory; zeros where the storage is gone or too short."""
        storage, address = self._found()
        _, _, shape, strides = self.known
        if not address:
            return np.broadcast_to(np.float32(0), shape)
        return np.asarray(_Memory(storage, address, shape, strides, _FLOAT32))

    def _found(self) -> tuple[torch.UntypedStorage | None, int]:
        _, offset, shape, strides = self.known
        storage = torch.UntypedStorage._new_with_weak_ptr(self._storage.cdata)
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides))
        if storage is None or storage.nbytes() < 4 * (last + 1):
            return None, 0
        return storage, storage.data_ptr() + 4 * offset


def known(tensor: torch.Tensor) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    """Return what tells tables apart: views of one storage are different ones."""
    return (storage_of(tensor), int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride())


def trim() -> None:
    """Give the system memory that is free, where the C library can.

    Small records between a program's tables keep free memory from the next table.
    """
    if _trim is not None:
        _trim(0)


_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
