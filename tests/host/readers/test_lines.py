import gzip

import pytest

from host.errors import InputError
from host.readers.lines import first_line, read_chunks

TEXT = b"".join(b"%d" % i * (i % 9) + b"\n" for i in range(200))


def whole(path, size):
    chunks = list(read_chunks(path, size))
    line = 1
    for chunk in chunks:
        assert chunk.first_line == line and chunk.data.endswith(b"\n")
        line += chunk.data.count(b"\n")
    return b"".join(chunk.data for chunk in chunks)


@pytest.mark.parametrize("size", [30, 64, 1000, 1 << 20])
@pytest.mark.parametrize("form", ["plain", "gzip", "no last newline", "carriage returns", "bom"])
def test_lines_come_back_whole(tmp_path, size, form):
    path = tmp_path / "lines"
    path.write_bytes({"plain": TEXT, "gzip": gzip.compress(TEXT), "no last newline": TEXT[:-1],
                      "carriage returns": TEXT.replace(b"\n", b"\r\n"),
                      "bom": b"\xef\xbb\xbf" + TEXT}[form])
    assert whole(path, size) == TEXT
    assert first_line(path) == b""


@pytest.mark.parametrize("content, message", [
    (b"", ":1:1: the file is empty"),
    (gzip.compress(b"", mtime=0), ":1:1: the file is empty"),
    (b"ab\ncd\x00e\n", ":2:3: binary data: byte 0x00"),
    (b"ab\n\xc3\xa9\n", ":2:1: binary data: byte 0xc3"),
    (b"ab\n" + b"c" * 300, ":2:64: a line of more than 64 bytes"),
    (b"\x00" * 300, ":1:1: binary data: byte 0x00"),
    (gzip.compress(TEXT, mtime=0)[:-30], ": Compressed file ended before"),
    (b"\x1f\x8bnot gzip at all", ": Unknown compression method"),
])
def test_bad_files_are_refused_with_the_place(tmp_path, content, message):
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        whole(path, 64)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match=r"none: No such file or directory$"):
        list(read_chunks(tmp_path / "none"))
    with pytest.raises(InputError, match=r": Is a directory$"):
        list(read_chunks(tmp_path))
    assert first_line(tmp_path / "none") == b""
