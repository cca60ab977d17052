import gzip

import pytest

from host.data.readers.lines import head, read_chunks
from host.errors import InputError

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
    assert head(path, 40).replace(b"\r", b"")[:20] == TEXT[:20]


def test_lines_before_the_end_of_a_cut_gzip_are_read(tmp_path):
    path = tmp_path / "cut"
    path.write_bytes(gzip.compress(TEXT, mtime=0)[:-30])
    lines, place = 0, None
    try:
        for chunk in read_chunks(path, 64):
            lines += chunk.data.count(b"\n")
    except InputError as error:
        place = error.line, error.column
    assert lines > 50 and place is not None
    assert place[0] == lines + 1 and 1 <= place[1] <= len(TEXT.split(b"\n")[lines]) + 1


@pytest.mark.parametrize("content, message", [
    (b"", ":1:1: the file is empty"),
    (gzip.compress(b"", mtime=0), ":1:1: the file is empty"),
    (b"ab\ncd\x00e\n", ":2:3: binary data: byte 0x00"),
    (b"ab\n\xc3\xa9\n", ":2:1: binary data: byte 0xc3"),
    (b"ab\n" + b"c" * 300, ":2:64: the line has more than 64 bytes"),
    (b"\x00" * 300, ":1:1: binary data: byte 0x00"),
    (gzip.compress(TEXT, mtime=0)[:5], ":1:1: Compressed file ended before"),
    (gzip.compress(b"ab\ncd\n", mtime=0)[:-8] + bytes(8), ":3:1: CRC check failed"),
    (b"\x1f\x8bnot gzip at all", ":1:1: Unknown compression method"),
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
    assert head(tmp_path / "none") == b""
