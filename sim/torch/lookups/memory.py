"""Access to the memory of a program's tensors, without keeping it alive."""

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
    """Shared memory of an array; ``owner`` keeps it alive."""

    def __init__(self, owner: object, address: int, shape: tuple[int, ...],
                 strides: tuple[int, ...], dtype: np.dtype):
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, False), "shape": shape, "typestr": dtype.str, "version": 3,
            "strides": tuple(stride * dtype.itemsize for stride in strides)}


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """Return an array that shares the memory of a plain tensor on the CPU.

    ``tensor.numpy()`` would prevent the program from resizing the tensor's storage later. The array
    is invalid after a resize.
    """
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    shape, dtype = tuple(tensor.shape), _numpy_dtype(tensor.dtype)
    if not tensor.numel():
        return np.empty(shape, dtype)
    return np.asarray(_Memory(tensor, tensor.data_ptr(), shape, tensor.stride(), dtype))


def storage_of(tensor: torch.Tensor) -> int:
    """Return an identifier of a tensor's storage, or 0 without storage.

    A resize keeps the identifier. A later storage may reuse it.
    """
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return 0


class Held:
    """Position of a float32 tensor in its storage, without keeping the storage alive.

    known: identifier of the storage, offset, shape and strides; unique while this object exists.
    """

    def __init__(self, tensor: torch.Tensor):
        self._storage = StorageWeakRef(tensor.untyped_storage())
        self.known = known(tensor)

    @property
    def alive(self) -> bool:
        """True if the storage still exists."""
        return not self._storage.expired()

    @property
    def address(self) -> int:
        """Address of the first value; 0 if the storage is gone or too short."""
        return self._found()[1]

    @property
    def values(self) -> np.ndarray:
        """The values in the program's memory; zeros if the storage is gone or too short."""
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
    """Return an identifier of a tensor as a table; views of a storage have different identifiers.
    """
    return (storage_of(tensor), int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride())


def trim() -> None:
    """Return free memory to the system, if the C library can.

    Small allocations between a program's tables otherwise keep the next table from using free
    memory.
    """
    if _trim is not None:
        _trim(0)


_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
