"""The port of a server: callers without the key, and authenticated peers with malformed messages.
"""

import os
import pickle
import socket
import stat
import struct
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")

from sim.torch.lookups.comparison import Comparison
from sim.torch.options import TorchOptions
from sim.torch.processes import server as server_module
from sim.torch.processes import wire
from sim.torch.processes.client import Client
from sim.torch.processes.key import read_address
from sim.torch.processes.merge import Seen
from sim.torch.processes.messages import write
from sim.torch.processes.server import Server
from sim.torch.processes.wire import HOST, AuthenticationError, MessageError, connect

RAN = Path("ran")


class Bomb:
    def __reduce__(self):
        return os.mkdir, (str(RAN),)


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(wire, "HANDSHAKE_SECONDS", 0.3)
    found = Server(TorchOptions(nodes=2))
    yield found
    found.close()
    assert not os.path.exists(found.address.path) and not RAN.exists()


def call(server: Server) -> socket.socket:
    return socket.create_connection((HOST, server.address.port), 5)


def meets(server: Server, rank: int | None = 1) -> None:
    """Check that the server immediately hears a process with the key."""
    began = time.monotonic()
    client = Client(server.address, rank, 2, lambda: None)
    client.seen(Seen.counted(rank, 2))
    assert time.monotonic() - began < 30


def ends(caller: socket.socket) -> bool:
    """Return True if the server closes the connection without an answer."""
    caller.settimeout(5)
    try:
        return not caller.recv(1 << 16)[len(wire._HELLO) + 32:] and not caller.recv(1)
    except ConnectionResetError:
        return True


LENGTH = struct.pack("!i", 0x7FFFFFFF)
PICKLE = pickle.dumps(("rank", Bomb()))


@pytest.mark.parametrize("sent", [
    b"", b"x", bytes(64), b"GET / HTTP/1.1\r\n\r\n" * 9, PICKLE * 3, LENGTH + PICKLE * 3,
    struct.pack("!i", len(PICKLE)) + PICKLE, b"#CHALLENGE#" + bytes(40), bytes(63)])
def test_a_caller_without_the_key_is_sent_away(server, sent):
    with call(server) as caller:
        caller.sendall(sent)
        meets(server)
        assert ends(caller)
    assert server.failure is None


def test_silent_callers_hold_up_nobody(server, monkeypatch):
    monkeypatch.setattr(wire, "HANDSHAKE_SECONDS", 60)
    callers = [call(server) for _ in range(3 * server_module._PENDING)]
    meets(server)
    assert ends(callers[0])  # makes room for later callers
    for caller in callers:
        caller.close()
    meets(server, 0)
    assert server.failure is None and [seen.rank for seen in server.gathered(1)] == [0, 1]


def test_a_caller_that_drips_is_sent_away_in_time(server):
    with call(server) as caller:
        began = time.monotonic()
        try:
            while time.monotonic() - began < 30:
                caller.sendall(b"x")
                time.sleep(0.05)
        except OSError:
            pass
        assert time.monotonic() - began < 20


def test_an_answer_of_another_call_is_no_proof(server):
    """An eavesdropped handshake gives no proof, and the server's own answers give none either."""
    with call(server) as first, call(server) as second:
        hello, other = first.recv(47), second.recv(47)
        nonces = hello[-32:] + other[-32:]
        first.sendall(other[-32:] + wire._proof(server.address.key, b"server", nonces))
        assert ends(first)


def test_a_caller_tells_a_hub_that_has_no_key(server):
    """An impostor at the port gets neither a usable proof nor a message."""
    with pytest.raises(AuthenticationError, match=r"a different program than|does not have"):
        connect(server.address._replace(key=bytes(32), port=_impostor(wire._HELLO + bytes(32), 96)))
    with pytest.raises(AuthenticationError):
        connect(server.address._replace(port=_impostor(b"SSH-2.0" + bytes(60), 0)))


def _impostor(said: bytes, more: int) -> int:
    listening = socket.create_server((HOST, 0))

    def answer() -> None:
        caller, _ = listening.accept()
        caller.sendall(said + bytes(more))
        with suppress(ConnectionResetError):
            while caller.recv(1 << 16):
                pass
        caller.close()
        listening.close()

    Thread(target=answer, daemon=True).start()
    return listening.getsockname()[1]


def test_only_the_user_can_read_the_key(server):
    path = Path(server.address.path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert read_address(str(path)) == server.address
    path.chmod(0o640)
    with pytest.raises(ValueError, match=r"must belong to user .* with mode 0600"):
        read_address(str(path))
    path.chmod(0o600)
    path.parent.chmod(0o755)
    with pytest.raises(ValueError, match="with mode 0700"):
        read_address(str(path))
    path.parent.chmod(0o700)


@pytest.mark.parametrize("made", ["text", "zeros", "fifo", "client", "folder", "long"])
def test_a_path_from_the_store_is_not_trusted(tmp_path, made):
    """The store of torchrun may contain any path; a process reads only key files of its own user.
    """
    tmp_path.chmod(0o700)
    path = tmp_path / "server"
    if made == "fifo":
        os.mkfifo(path, 0o600)
    elif made == "client":
        (tmp_path / "other").write_text(f"EmberNIC server 1\n80\n{'0' * 64}\n")
        (tmp_path / "other").chmod(0o600)
        path.symlink_to("other")
    elif made == "folder":
        path.mkdir()
    else:
        path.write_text({"text": "root:x:0:0:\n", "zeros": "\0" * 100,
                         "long": f"EmberNIC server 1\n{'9' * 99}\n{'0' * 64}\n"}[made])
        path.chmod(0o600)
    with pytest.raises((ValueError, OSError)):
        read_address(str(path))


@pytest.mark.parametrize("path", ["", "server", "/etc/passwd", "/dev/zero", "../server",
                                  "/a\0/server"])
def test_a_path_that_is_none_of_ours(path):
    with pytest.raises(ValueError, match="must be an absolute path"):
        read_address(path)


BAD = [b"\0" * 16, b"x" * 400, LENGTH + PICKLE,
       wire._PREFIX.pack(wire._MAGIC, 0xFFFFFFFF, 0), wire._PREFIX.pack(wire._MAGIC, 2, 1 << 60),
       *(wire._PREFIX.pack(wire._MAGIC, len(text), size) + text for text, size in (
           (b"{}", 0), (b"[" * 50000, 0), (b'{"said":1,"arrays":[]}', 0),
           (b'{"said":["rank",[1]],"arrays":[]}', 0),
           (b'{"said":["rank",[7,2]],"arrays":[]}', 0),
           (b'{"said":["rank",["0",true]],"arrays":[]}', 0),
           (b'{"said":["over",[]],"arrays":[]}', 0),
           (b'{"said":["look up",[0,[],false]],"arrays":[]}', 0),
           (b'{"said":["counted",[[[],[],[]]]],"arrays":[]}', 0),
           (b'{"said":["come",[1]],"arrays":[["|O8",[1]]]}', 8),
           (b'{"said":["come",[1]],"arrays":[["<f4",[-1]]]}', 4),
           (b'{"said":["come",[1]],"arrays":[["<f4",[1099511627775,1099511627775]]]}', 4)))]


@pytest.mark.parametrize("sent", BAD)
def test_a_peer_that_sends_nonsense_ends_itself_alone(server, sent, capfd):
    peer = connect(server.address)
    peer.socket.sendall(sent)
    assert ends(peer.socket)
    meets(server)
    meets(server, 0)
    assert [seen.rank for seen in server.gathered(1)] == [0, 1]
    said = capfd.readouterr().err
    assert said.startswith("sim: a process sent a message that cannot be read: ")
    assert said.count("\n") == 1 and server.failure is None


def test_half_a_message_takes_no_memory_and_holds_up_nobody(server):
    peer = connect(server.address)
    peer.socket.sendall(wire._PREFIX.pack(wire._MAGIC, 1 << 30, 1 << 36) + b"{")
    meets(server)
    peer.close()


def test_a_peer_that_does_not_read_holds_up_nobody(server):
    peer = connect(server.address)
    write(peer, "rank", 0, 2)
    deadline = time.monotonic() + 5
    while not server._ranks and time.monotonic() < deadline:
        time.sleep(0.01)
    for _ in range(20):
        server._ranks[0].send("answer", [np.zeros(1 << 20, np.float32)])
    meets(server)
    peer.close()


def test_the_end_of_a_process_ends_a_group_and_nothing_else(server, capfd):
    connect(server.address).close()
    peer = connect(server.address)
    write(peer, "rank", 1, 2)
    peer.close()
    assert server.failed(0.5) is None
    server.first_of_group = True
    connect(server.address).close()
    peer = connect(server.address)
    write(peer, "rank", 1, 2)
    peer.close()
    failure = server.failed(5)
    assert failure and failure.ended == "process 1 of 2 ended before the program did"


def test_what_is_seen_arrives_as_it_is(server):
    seen = Seen.counted(0, 2)
    seen.comparison = Comparison([1, 2], [1, 1], [0, 3], float("inf"))
    seen.chains.seen[13, 512, 16] = 4
    seen.missed["file.py:3", "why"] = 2
    seen.written.optimizers.add("sgd")
    Client(server.address, 0, 2, lambda: None).seen(seen)
    meets(server)
    assert server.gathered(1)[0] == seen


def test_a_message_beyond_the_bounds_is_not_sent(server, monkeypatch):
    peer = connect(server.address)
    monkeypatch.setattr(wire, "_TEXT", 10)
    with pytest.raises(MessageError, match="must have at most 10 bytes"):
        write(peer, "come", 1)
    peer.close()


class Store(dict):
    """A store of torchrun, writable for any user."""

    set = dict.__setitem__

    def get(self, name):
        return self[name].encode()


@pytest.mark.parametrize("named", ["theirs", "/etc/passwd", "a\0b", "/none/server"])
def test_a_store_that_an_attacker_writes_starts_nothing(monkeypatch, tmp_path, capfd, named):
    """The attacker writes before or after the first process."""
    from sim.torch.catching.session import Session
    from sim.torch.processes import peers

    monkeypatch.setattr(peers, "_MEETING", 0.2)
    theirs = tmp_path / "server"
    theirs.write_text(f"EmberNIC server 1\n{_impostor(bytes(200), 0)}\n{'0' * 64}\n")
    theirs.chmod(0o644)
    process = peers.Processes(Session(TorchOptions(nodes=2)))
    store = Store({process._name: str(theirs) if named == "theirs" else named})
    with pytest.raises(peers.ProcessError) as error:
        process._join(store, 1, 2)
    said = capfd.readouterr().err
    assert error.value.status == 2 and said.count("\n") == 1
    assert said.startswith("sim: the processes of the program cannot connect: ")
