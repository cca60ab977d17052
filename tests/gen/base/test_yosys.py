"""Start of a process before Yosys is compiled."""

import threading
import time
from subprocess import CompletedProcess

from gen.base import yosys


def test_one_process_compiles_yosys_and_the_others_wait(tmp_path, monkeypatch, capsys):
    folder, running, most = tmp_path / "cache" / "yowasp", [], []

    def completed(*_arguments, **_named) -> CompletedProcess:
        running.append(1)
        most.append(len(running))
        time.sleep(0.2)
        folder.mkdir(exist_ok=True)
        running.pop()
        return CompletedProcess((), 0, "done", "")

    monkeypatch.delenv("YOSYS", raising=False)
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(folder))
    monkeypatch.setattr(yosys, "completed", completed)
    threads = [threading.Thread(target=yosys.run_yosys, args=("help",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1]
    assert "compiling Yosys, once, about 40 s" in capsys.readouterr().err
    assert yosys.run_yosys("help") == "done"
    assert capsys.readouterr().err == ""
