"""Small copies between host and GPU memory, by a copy engine and by a kernel's loads and stores."""

from collections.abc import Iterator

from host.calibrate.gpu.device import ROUNDS, Device
from host.calibrate.gpu.driver import Word
from host.calibrate.gpu.items.gather import BLOCK
from host.calibrate.gpu.items.launch import first_seen
from host.calibrate.gpu.native import Action
from host.calibrate.reading import Absent, Missing, Reading, reading

__all__ = ["SIZES", "copies"]

SIZES = (0, 64, 1024, 4096, 16384, 65536, 262144, 1048576)
_BLOCKS = 16
"""Most blocks of a kernel that copies: enough to fill the link."""


def copies(device: Device) -> Iterator[Reading | Absent]:
    """Yield what a copy of each of `SIZES` takes in either direction: host time, and until done.

    From Python by PyTorch; from C by the driver, beside a kernel that does the same by loads and
    stores of 16 bytes. Done means that the host's wait for the stream has returned.
    """
    torch = device.torch
    for size in SIZES:
        host, here = device.pinned(size, torch.uint8), device.zeros(size, torch.uint8)
        for way, target, source in (("to", here, host), ("from", host, here)):
            act = lambda to=target, of=source: to.copy_(of, non_blocking=True)  # noqa: E731
            yield reading(f"copy.{way}_gpu.{size}B.python_us", device.single(act),
                          "host time of PyTorch's copy_, without waiting")
            yield reading(f"copy.{way}_gpu.{size}B.python_done_us", device.times(act),
                          "PyTorch's copy_ and the wait for the device")
    try:
        yield from _driven(device)
    except Missing as missing:
        yield Absent("copy.driver", str(missing))


def _driven(device: Device) -> Iterator[Reading | Absent]:
    driver, torch = device.driver, device.torch
    stream = driver.stream()
    wait = driver.wait(stream)
    done, flag = device.zeros(1, torch.int32), device.pinned(1, torch.int32)
    device.wait()

    def each(name: str, about: str, action: Action) -> Iterator[Reading]:
        yield reading(f"{name}call_us", driver.series(action, ROUNDS, 2 * device.repeats),
                      f"{about}: host time in a series, from C")
        driver.loops.row([action, wait])
        yield reading(f"{name}done_us", [driver.loops.row([action, wait])
                                         for _ in range(8 * device.repeats)],
                      f"{about}, and the wait for it, from C; idle GPU")
        yield reading(f"{name}series_us", [
            driver.loops.row([action] * ROUNDS + [wait]) / ROUNDS
            for _ in range(2 * device.repeats)], f"{about}: {ROUNDS} one after the other, each")

    def both(size: int) -> Iterator[Reading]:
        most = max(16, size)
        host, here = device.pinned(most, torch.uint8), device.zeros(most, torch.uint8)
        device.wait()
        for way, target, source in (("to", here, host), ("from", host, here)):
            to, of = target.data_ptr(), source.data_ptr()
            yield from each(f"copy.{way}_gpu.{size}B.", "a copy by the driver",
                            driver.copy(stream, to, of, size))
            blocks = max(1, min(_BLOCKS, -(-size // (16 * BLOCK))))
            kernel = driver.launch(stream, "stores", "stores", blocks, BLOCK, of, to,
                                   Word(size // 16), done.data_ptr(), flag.data_ptr(), Word(1))
            yield from each(f"copy.{way}_gpu.{size}B.kernel_", "a kernel's loads and stores, and "
                            "a flag", kernel)
            _, seen = first_seen(device, driver, kernel, flag, 8 * device.repeats)
            yield reading(f"copy.{way}_gpu.{size}B.kernel_seen_us", seen, "from the launch until "
                          "the host sees the flag behind a kernel's stores; idle GPU")

    for size in SIZES:
        try:
            yield from both(size)
        except Missing as missing:
            yield Absent(f"copy.driver.{size}B", str(missing))
