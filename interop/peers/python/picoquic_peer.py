"""An hq-interop peer on picoquic: `server` or `client`, with the flags of all peers under interop/peers.

The package aiopquic ships picoquic and exports its C interface, which does no IO: the sockets are here, one for each
local address, so that a second path is a second socket.
"""

import ctypes
import hashlib
import os
import selectors
import signal
import socket
import struct
import sys
import tempfile
import time
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from urllib.parse import urlsplit

from aiopquic._binding import _transport

from body import answer_to, make_block
from program import new_report, print_line, read_flags

ALPN = b"hq-interop"
# Bytes received after which a client that was asked to do so updates its keys, or moves.
UPDATE_AFTER = 100_000
# Nobody speaks a version of this form (RFC 9000 15).
RESERVED_VERSION = 0x1A2A3A4A
CHACHA20 = 0x1303
# Paths are numbered from 0 in the order of their making; no more than these are asked about.
PATHS = 8
MICROSECONDS = 1_000_000
TIME_LIMIT = 90
# What picoquic tells of by callback.
STREAM_DATA, STREAM_FIN, STREAM_RESET = 0, 1, 2
STATELESS_RESET, CLOSE, APPLICATION_CLOSE = 4, 5, 6
READY, VERSION_NEGOTIATION, NEXT_PATH_ALLOWED = 10, 12, 26
DISCONNECTED = 19
# Room for any sockaddr, for picoquic's largest packet, and for any UDP datagram.
SOCKADDR_ROOM, PACKET_ROOM, DATAGRAM_ROOM = 128, 1536, 65_536
# Packets sent or received in one go before the other direction has its turn.
BURST = 64

CALLBACK = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_void_p, c_size_t, c_int, c_void_p, c_void_p)


class ConnectionId(ctypes.Structure):
    """An empty one lets picoquic choose."""

    _fields_ = [("id", c_uint8 * 20), ("length", c_uint8)]


class PathQuality(ctypes.Structure):
    _fields_ = [
        (name, c_uint64)
        for name in (
            "receive_rate pacing_rate cwin rtt rtt_sample rtt_variant rtt_min rtt_max sent lost timer_losses spurious_losses"
            " max_spurious_rtt max_reorder_delay max_reorder_gap bytes_in_transit bytes_sent bytes_received"
        ).split()
    ]


PROTOTYPES = {
    "current_time": (c_uint64, []),
    "create": (
        c_void_p,
        [c_uint32, c_char_p, c_char_p, c_char_p, c_char_p, CALLBACK, c_void_p, c_void_p, c_void_p, c_char_p, c_uint64]
        + [c_void_p, c_char_p, c_char_p, c_size_t],
    ),
    "set_default_multipath_option": (None, [c_void_p, c_int]),
    "set_cookie_mode": (None, [c_void_p, c_int]),
    "set_cipher_suite": (c_int, [c_void_p, c_int]),
    "set_key_log_file_from_env": (None, [c_void_p]),
    "perflog_setup": (c_int, [c_void_p, c_char_p]),
    "create_cnx": (
        c_void_p,
        [c_void_p, ConnectionId, ConnectionId, c_char_p, c_uint64, c_uint32, c_char_p, c_char_p, ctypes.c_char],
    ),
    "set_desired_version": (None, [c_void_p, c_uint32]),
    "start_client_cnx": (c_int, [c_void_p]),
    "delete_cnx": (None, [c_void_p]),
    "close": (c_int, [c_void_p, c_uint64]),
    "get_cnx_state": (c_int, [c_void_p]),
    "get_local_error": (c_uint64, [c_void_p]),
    "get_remote_error": (c_uint64, [c_void_p]),
    "tls_is_psk_handshake": (c_int, [c_void_p]),
    "is_0rtt_available": (c_int, [c_void_p]),
    "add_to_stream": (c_int, [c_void_p, c_uint64, c_char_p, c_size_t, c_int]),
    "get_next_local_stream_id": (c_uint64, [c_void_p, c_int]),
    "reset_stream": (c_int, [c_void_p, c_uint64, c_uint64]),
    "start_key_rotation": (c_int, [c_void_p]),
    "subscribe_new_path_allowed": (c_int, [c_void_p, POINTER(c_int)]),
    "probe_new_path": (c_int, [c_void_p, c_char_p, c_char_p, c_uint64]),
    "get_path_quality": (c_int, [c_void_p, c_uint64, POINTER(PathQuality)]),
    "get_next_wake_delay": (c_int64, [c_void_p, c_uint64, c_int64]),
    "incoming_packet": (c_int, [c_void_p, c_char_p, c_size_t, c_char_p, c_char_p, c_int, c_uint8, c_uint64]),
    "prepare_next_packet": (
        c_int,
        [c_void_p, c_uint64, c_void_p, c_size_t, POINTER(c_size_t), c_void_p, c_void_p, POINTER(c_int), c_void_p, c_void_p],
    ),
}


def load() -> dict:
    """picoquic's functions by their names, less the prefix."""
    library, functions = ctypes.CDLL(_transport.__file__), {}
    for name, (result, arguments) in PROTOTYPES.items():
        functions[name] = getattr(library, f"picoquic_{name}")
        functions[name].restype, functions[name].argtypes = result, arguments
    return functions


def pack_address(host: str, port: int) -> bytes:
    """A sockaddr as Linux has it."""
    if ":" in host:
        packed = struct.pack("=HHI", socket.AF_INET6, socket.htons(port), 0) + socket.inet_pton(socket.AF_INET6, host)
    else:
        packed = struct.pack("=HH", socket.AF_INET, socket.htons(port)) + socket.inet_aton(host)
    return packed.ljust(SOCKADDR_ROOM, b"\0")


def unpack_address(packed: bytes) -> tuple | None:
    family, port = struct.unpack_from("=HH", packed)
    if family == socket.AF_INET:
        return socket.inet_ntoa(packed[4:8]), socket.ntohs(port)
    if family == socket.AF_INET6:
        return socket.inet_ntop(socket.AF_INET6, packed[8:24]), socket.ntohs(port)
    return None


class Context:
    """A picoquic context and its sockets."""

    def __init__(self, options, scratch: Path, on_event):
        self.call, self.on_event, self.scratch = load(), on_event, scratch
        # picoquic keeps the pointer.
        self.callback = CALLBACK(self.heard)
        text = [None if name is None else name.encode() for name in (options.cert, options.key, options.ca)]
        self.quic = self.call["create"](
            256, *text, ALPN, self.callback, None, None, None, os.urandom(16), self.now(), None,
            str(scratch / "tickets").encode(), None, 0,
        )  # fmt: skip
        if not self.quic:
            raise OSError("picoquic did not start: are the certificate and the key readable?")
        # A client that moves has one path.
        self.call["set_default_multipath_option"](self.quic, 0 if options.move else 1)
        self.call["set_key_log_file_from_env"](self.quic)
        self.call["perflog_setup"](self.quic, str(scratch / "connections").encode())
        if options.retry:
            self.call["set_cookie_mode"](self.quic, 1)
        if options.chacha20 and self.call["set_cipher_suite"](self.quic, CHACHA20) != 0:
            raise OSError("this picoquic has no ChaCha20")
        self.sockets, self.selector, self.failure = {}, selectors.DefaultSelector(), None
        self.buffer = ctypes.create_string_buffer(PACKET_ROOM)

    def now(self) -> int:
        return self.call["current_time"]()

    def heard(self, cnx, stream, data, length, event, _context, _stream_context) -> int:
        try:
            # Only these come with bytes.
            content = ctypes.string_at(data, length) if event in (STREAM_DATA, STREAM_FIN) and length else b""
            self.on_event(cnx, stream, event, content)
            return 0
        except Exception as error:  # it must not cross the C code
            self.failure = error
            return -1

    def bind(self, host: str, port: int) -> tuple:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        opened = socket.socket(family, socket.SOCK_DGRAM)
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            opened.setsockopt(socket.SOL_SOCKET, buffer, 1 << 22)
        opened.setblocking(False)
        opened.bind((host, port))
        name = opened.getsockname()[:2]
        self.sockets[name] = opened
        self.selector.register(opened, selectors.EVENT_READ, (opened, pack_address(*name)))
        return name

    def turn(self) -> None:
        """Sends what is due, then waits until a packet or a timer is."""
        for _ in range(BURST):
            if not self.send():
                break
        now = self.now()
        delay = self.call["get_next_wake_delay"](self.quic, now, MICROSECONDS // 10)
        for key, _ in self.selector.select(max(delay, 0) / MICROSECONDS):
            self.receive(*key.data)
        if self.failure:
            raise self.failure

    def send(self) -> bool:
        length, interface = c_size_t(0), c_int(0)
        to, source = (ctypes.create_string_buffer(SOCKADDR_ROOM) for _ in range(2))
        cid, last = ctypes.create_string_buffer(ctypes.sizeof(ConnectionId)), c_void_p()
        self.call["prepare_next_packet"](
            self.quic, self.now(), self.buffer, PACKET_ROOM, byref(length), to, source, byref(interface), cid, byref(last)
        )
        if length.value == 0:
            return False
        # A client's first packets have no local address yet.
        opened = self.sockets.get(unpack_address(source.raw)) or next(iter(self.sockets.values()))
        try:
            opened.sendto(memoryview(self.buffer)[: length.value], unpack_address(to.raw))
        except (BlockingIOError, ConnectionError):
            pass  # lost, as packets are
        return True

    def receive(self, opened: socket.socket, local: bytes) -> None:
        for _ in range(BURST):
            try:
                data, source = opened.recvfrom(DATAGRAM_ROOM)
            except BlockingIOError:
                return
            except ConnectionError:
                continue  # an ICMP message about an earlier packet
            self.call["incoming_packet"](self.quic, data, len(data), pack_address(*source[:2]), local, 0, 0, self.now())

    def paths(self, cnx) -> list:
        found = []
        for path in range(PATHS):
            quality = PathQuality()
            if self.call["get_path_quality"](cnx, path, byref(quality)) == 0:
                found.append({"id": path, "sent_bytes": quality.bytes_sent, "received_bytes": quality.bytes_received})
        return found

    def finished(self) -> dict:
        """What picoquic noted of the connection that was deleted last, by the name of the column."""
        rows = [line.split(",") for line in (self.scratch / "connections").read_text().splitlines()]
        return {name.strip(): value.strip() for name, value in zip(rows[0], rows[-1])}


class Server:
    """Answers each request when its stream ends."""

    def __init__(self, options, scratch: Path):
        self.options, self.block, self.requests = options, make_block(), {}
        self.context = Context(options, scratch, self.on_event)

    def on_event(self, cnx, stream, event, content) -> None:
        if event in (STREAM_DATA, STREAM_FIN):
            line = self.requests.setdefault((cnx, stream), bytearray())
            line += content
            if event == STREAM_FIN:
                self.answer(cnx, stream, self.requests.pop((cnx, stream)).decode().strip())
        elif event in (STATELESS_RESET, CLOSE, APPLICATION_CLOSE):
            call = self.context.call
            why = f"error {call['get_remote_error'](cnx) or call['get_local_error'](cnx):#x}"
            print_line({"event": "closed", "why": why, "paths": self.context.paths(cnx)})
            # picoquic may give its address to another.
            self.requests = {key: line for key, line in self.requests.items() if key[0] != cnx}

    def answer(self, cnx, stream, line: str) -> None:
        call = self.context.call
        try:
            body = answer_to(line, self.options.root, self.block)
        except (ValueError, OSError) as error:
            print(error, file=sys.stderr)
            call["reset_stream"](cnx, stream, 404)
            return
        call["add_to_stream"](cnx, stream, body, len(body), 1)

    def run(self) -> None:
        names = []
        for listen in self.options.listen:
            host, _, port = listen.rpartition(":")
            host, port = self.context.bind(host.strip("[]"), int(port))
            names.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        print_line({"event": "listening", "addresses": names})
        while True:
            self.context.turn()


class Client:
    """One connection after the other, each of which hashes what arrives."""

    def __init__(self, options, scratch: Path):
        self.options, self.deadline = options, time.monotonic() + TIME_LIMIT
        self.context = Context(options, scratch, self.on_event)
        self.call = self.context.call
        where = urlsplit(options.urls[0])
        self.host, self.remote = where.hostname.encode(), pack_address(where.hostname, where.port)
        locals_ = options.path or ["::" if ":" in where.hostname else "127.0.0.1"]
        self.locals = [pack_address(*self.context.bind(local, 0)) for local in locals_]
        self.forget()

    def forget(self) -> None:
        """Nothing is known of the next connection."""
        self.cnx, self.bodies, self.events, self.update_keys, self.move_to = None, {}, set(), False, None

    def on_event(self, cnx, stream, event, content) -> None:
        if cnx != self.cnx:
            return
        self.events.add(event)
        if event in (STREAM_DATA, STREAM_FIN):
            body = self.bodies[stream]
            body["hash"].update(content)
            body["bytes"] += len(content)
            body["done"] = event == STREAM_FIN
            if self.update_keys and body["bytes"] >= UPDATE_AFTER:
                self.update_keys = False
                if self.call["start_key_rotation"](cnx) != 0:
                    raise ConnectionError("picoquic began no key update")
            if self.move_to and body["bytes"] >= UPDATE_AFTER:
                local, self.move_to = pack_address(*self.context.bind(self.move_to, 0)), None
                # With one path it is left for the new one as soon as that is validated.
                result = self.call["probe_new_path"](cnx, self.remote, local, self.context.now())
                if result != 0:
                    raise ConnectionError(f"picoquic does not move: {result:#x}")
        elif event == STREAM_RESET:
            raise ConnectionError(f"stream {stream} was reset")

    def connect(self, version: int = 0) -> None:
        self.forget()
        empty = ConnectionId()
        self.cnx = self.call["create_cnx"](
            self.context.quic, empty, empty, self.remote, self.context.now(), version, self.host, ALPN, 1
        )
        if not self.cnx:
            raise ConnectionError("picoquic made no connection")
        if self.options.second_version:
            self.call["set_desired_version"](self.cnx, 0x6B3343CF)

    def start(self) -> None:
        if self.call["start_client_cnx"](self.cnx) != 0:
            raise ConnectionError("picoquic did not start the connection")

    def wait(self, until, what: str) -> None:
        while not until():
            if self.call["get_cnx_state"](self.cnx) == DISCONNECTED or {CLOSE, APPLICATION_CLOSE} & self.events:
                local, remote = (self.call[f"get_{side}_error"](self.cnx) for side in ("local", "remote"))
                raise ConnectionError(f"closed before {what}: local error {local:#x}, remote error {remote:#x}")
            if time.monotonic() > self.deadline:
                raise TimeoutError(f"no {what} within {TIME_LIMIT} s")
            self.context.turn()

    def request(self, urls: list) -> None:
        for url in urls:
            stream = self.call["get_next_local_stream_id"](self.cnx, 0)
            line = f"GET {urlsplit(url).path}\r\n".encode()
            self.bodies[stream] = {"url": url, "bytes": 0, "hash": hashlib.sha256(), "done": False}
            if self.call["add_to_stream"](self.cnx, stream, line, len(line), 1) != 0:
                raise ConnectionError("picoquic took no request")

    def bodies_of(self) -> list:
        self.wait(lambda: all(body["done"] for body in self.bodies.values()), "the end of the bodies")
        return [
            {"url": body["url"], "bytes": body["bytes"], "sha256": body["hash"].hexdigest()} for body in self.bodies.values()
        ]

    def open_paths(self) -> None:
        """A path from each further local address."""
        for local in self.locals[1:]:
            allowed = c_int(0)
            if self.call["subscribe_new_path_allowed"](self.cnx, byref(allowed)) != 0:
                raise ConnectionError("multipath was not negotiated")
            if not allowed.value:
                self.wait(lambda: NEXT_PATH_ALLOWED in self.events, "the peer's connection ids for a path")
            result = self.call["probe_new_path"](self.cnx, self.remote, local, self.context.now())
            if result != 0:
                raise ConnectionError(f"no path from {unpack_address(local)}: {result:#x}")
            self.wait(self.all_in_use, "an answer on the further path")

    def all_in_use(self) -> bool:
        paths = self.context.paths(self.cnx)
        return len(paths) > 1 and all(path["received_bytes"] for path in paths)

    def end(self) -> dict:
        """Says goodbye, and returns picoquic's notes on the connection."""
        self.call["close"](self.cnx, 0)
        for _ in range(10):
            self.context.turn()
        self.call["delete_cnx"](self.cnx)
        return self.context.finished()

    def run(self, report: dict) -> None:
        options, urls = self.options, self.options.urls
        if options.foreign_version:
            self.connect(RESERVED_VERSION)
            self.start()
            self.wait(lambda: VERSION_NEGOTIATION in self.events, "Version Negotiation")
            report["version_negotiated"] = True
            self.call["delete_cnx"](self.cnx)
        if options.resume or options.early:
            self.connect()
            self.start()
            self.wait(lambda: READY in self.events, "handshake")
            self.request(urls[:1])
            report["downloads"] += self.bodies_of()
            # Tickets may come after the body.
            late = time.monotonic() + 0.2
            self.wait(lambda: time.monotonic() > late, "a ticket")
            self.end()
            urls = urls[1:] or urls
        self.connect()
        self.start()
        # The first flight is made, and not sent before the next turn.
        if options.early:
            if not self.call["is_0rtt_available"](self.cnx):
                raise ConnectionError("the ticket allows no early data")
            self.request(urls)
        self.wait(lambda: READY in self.events, "handshake")
        self.open_paths()
        self.update_keys, self.move_to = options.key_update, options.move
        if not options.early:
            self.request(urls)
        report["downloads"] += self.bodies_of()
        report["resumed"] = bool(self.call["tls_is_psk_handshake"](self.cnx))
        report["paths"] = self.context.paths(self.cnx)
        notes = self.end()
        report["early_data"] = options.early and notes["zero_rtt"] == "1"
        report["version"] = int(notes["QUIC_v"], 16)


def main() -> int:
    options = read_flags()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as scratch:
        if options.mode == "server":
            try:
                Server(options, Path(scratch)).run()
            except KeyboardInterrupt:
                return 0
        report = new_report()
        try:
            Client(options, Path(scratch)).run(report)
        except Exception as error:  # whatever it is, it is reported
            report.update(ok=False, error=f"{type(error).__name__}: {error}")
        print_line(report)
        return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
