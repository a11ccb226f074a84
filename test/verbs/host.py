#!/usr/bin/env python3
"""Runs a command on one of two guests (run.py --topo hosts), as ssh does, with the variables and the folder of here:

    host.py HOST WORD...            the words, joined by blanks, are for a shell there
    host.py --serve HOST COMMAND... accepts such commands on HOST while COMMAND runs there; run.py starts it

Input, output, errors and the exit status are passed on; if host.py is killed, so is the command. All goes over a cable of its own.
"""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

ADDRESSES = {"a": ("10.78.0.1", 514), "b": ("10.78.0.2", 514)}
PATIENCE = 60  # seconds until a guest must have booted
# Frames: one of these, the number of bytes that follow, the bytes. No bytes: the end of the stream.
INPUT, OUTPUT, ERRORS, STATUS = b"i", b"o", b"e", b"s"
HEADER = struct.Struct(">cI")


def receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def receiveFrame(connection: socket.socket) -> tuple[bytes, bytes]:
    kind, size = HEADER.unpack(receive(connection, HEADER.size))
    return kind, receive(connection, size)


def sendFrame(connection: socket.socket, kind: bytes, data: bytes, lock: threading.Lock) -> None:
    with lock:
        connection.sendall(HEADER.pack(kind, len(data)) + data)


def sendStream(connection: socket.socket, kind: bytes, stream: int, lock: threading.Lock) -> None:
    try:
        while data := os.read(stream, 1 << 16):
            sendFrame(connection, kind, data, lock)
        sendFrame(connection, kind, b"", lock)
    except OSError:
        pass  # the other side is gone


def inBackground(function, *arguments) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def execute(connection: socket.socket) -> None:
    """What the other side of a connection asks for."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    lock = threading.Lock()
    wanted = json.loads(receiveFrame(connection)[1])
    process = subprocess.Popen(["/bin/sh", "-c", wanted["command"]], cwd=wanted["folder"], env=wanted["variables"], start_new_session=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    inBackground(feed, connection, process)
    streams = ((OUTPUT, process.stdout), (ERRORS, process.stderr))
    threads = [inBackground(sendStream, connection, kind, stream.fileno(), lock) for kind, stream in streams]
    for thread in threads:
        thread.join()
    status = process.wait()
    try:
        sendFrame(connection, STATUS, str(status if status >= 0 else 128 - status).encode(), lock)
    except OSError:
        pass


def feed(connection: socket.socket, process: subprocess.Popen) -> None:
    """Input of a command until the other side ends, and the command with it."""
    try:
        while True:
            _, data = receiveFrame(connection)
            try:
                if data:
                    os.write(process.stdin.fileno(), data)
                else:
                    process.stdin.close()
            except (BrokenPipeError, ValueError):
                pass  # the command reads no more
    except (EOFError, OSError):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def serve(name: str, command: list[str]) -> int:
    listener = socket.create_server(ADDRESSES[name])

    def accept() -> None:
        while True:
            inBackground(execute, listener.accept()[0])

    inBackground(accept)
    status = subprocess.run(command).returncode
    return status if status >= 0 else 128 - status


def connect(name: str) -> socket.socket:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection = socket.create_connection(ADDRESSES[name], timeout=5)
            connection.settimeout(None)
            return connection
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def ask(name: str, words: list[str]) -> int:
    connection = connect(name)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    lock = threading.Lock()
    wanted = {"command": " ".join(words), "folder": os.getcwd(), "variables": dict(os.environ)}
    sendFrame(connection, INPUT, json.dumps(wanted).encode(), lock)
    inBackground(sendStream, connection, INPUT, 0, lock)
    sinks = {OUTPUT: sys.stdout.buffer, ERRORS: sys.stderr.buffer}
    while True:
        try:
            kind, data = receiveFrame(connection)
        except (EOFError, OSError):
            print(f"host.py: the connection to {name} has ended", file=sys.stderr)
            return 255
        if kind == STATUS:
            return int(data)
        sinks[kind].write(data)
        sinks[kind].flush()


def main() -> int:
    words = sys.argv[1:]
    if len(words) >= 3 and words[0] == "--serve":
        return serve(words[1], words[2:])
    if len(words) < 2 or words[0] not in ADDRESSES:
        print(__doc__, file=sys.stderr)
        return 2
    return ask(words[0], words[1:])


if __name__ == "__main__":
    # At once: a thread may still wait for input that never comes.
    status = main()
    sys.stdout.flush()
    os._exit(status)
