"""An hq-interop peer on aioquic: `server` or `client`, with the flags of all peers under interop/peers."""

import argparse
import asyncio
import hashlib
import os
import socket
import ssl
import sys
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamDataReceived, StreamReset
from aioquic.tls import CipherSuite

from body import answer_to, make_block
from program import new_report, print_line, read_flags

# Bytes received after which a client that was asked to do so updates its keys, or moves.
UPDATE_AFTER = 100_000
# Nobody speaks a version of this form (RFC 9000 15).
RESERVED_VERSION = 0x1A2A3A4A


def configuration(options: argparse.Namespace, is_client: bool) -> QuicConfiguration:
    config = QuicConfiguration(is_client=is_client, alpn_protocols=["hq-interop"], max_data=1 << 24, max_stream_data=1 << 24)
    if options.chacha20:
        config.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]
    if name := os.environ.get("SSLKEYLOGFILE"):
        config.secrets_log_file = open(name, "a")
    return config


class Server(QuicConnectionProtocol):
    """Answers each request when its stream ends."""

    def __init__(self, *args, options: argparse.Namespace, block: bytes, **kwargs):
        super().__init__(*args, **kwargs)
        self.options, self.block, self.requests = options, block, {}

    def quic_event_received(self, event) -> None:
        if isinstance(event, StreamDataReceived):
            line = self.requests.setdefault(event.stream_id, bytearray())
            line += event.data
            if event.end_stream:
                self.answer(event.stream_id, bytes(line).decode().strip())
        elif isinstance(event, ConnectionTerminated):
            print_line({"event": "closed", "why": event.reason_phrase, "code": event.error_code})

    def answer(self, stream: int, line: str) -> None:
        try:
            body = answer_to(line, self.options.root, self.block)
        except (ValueError, OSError) as error:
            print(error, file=sys.stderr)
            self._quic.reset_stream(stream, 404)
            return
        if self.options.key_update and len(body) >= UPDATE_AFTER:
            self.request_key_update()
        self._quic.send_stream_data(stream, body, end_stream=True)
        self.transmit()


async def run_server(options: argparse.Namespace) -> None:
    config = configuration(options, is_client=False)
    config.load_cert_chain(options.cert, options.key)
    block, tickets, addresses = make_block(), {}, []

    def create(*args, **kwargs):
        return Server(*args, options=options, block=block, **kwargs)

    for listen in options.listen:
        host, _, port = listen.rpartition(":")
        host = host.strip("[]")
        server = await serve(
            host,
            int(port),
            configuration=config,
            create_protocol=create,
            retry=options.retry,
            # A ticket serves once.
            session_ticket_fetcher=lambda label: tickets.pop(label, None),
            session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
        )
        host, port = server._transport.get_extra_info("sockname")[:2]
        addresses.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    print_line({"event": "listening", "addresses": addresses})
    await asyncio.Event().wait()


class Client(QuicConnectionProtocol):
    """Hashes what arrives on each stream."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.bodies, self.received, self.update_keys, self.move_to, self.moving = {}, 0, False, None, None

    def fetch(self, target: str) -> asyncio.Future:
        stream = self._quic.get_next_available_stream_id()
        self.bodies[stream] = [hashlib.sha256(), 0, asyncio.get_running_loop().create_future()]
        self._quic.send_stream_data(stream, f"GET {target}\r\n".encode(), end_stream=True)
        return self.bodies[stream][2]

    def quic_event_received(self, event) -> None:
        if isinstance(event, StreamDataReceived):
            body = self.bodies[event.stream_id]
            body[0].update(event.data)
            body[1] += len(event.data)
            self.received += len(event.data)
            if event.end_stream and not body[2].done():
                body[2].set_result((body[1], body[0].hexdigest()))
            if self.update_keys and self.received >= UPDATE_AFTER:
                self.update_keys = False
                self.request_key_update()
            if self.move_to and self.received >= UPDATE_AFTER:
                self.moving, self.move_to = asyncio.ensure_future(self.move(self.move_to)), None
        elif isinstance(event, StreamReset):
            self.fail(event.stream_id, f"reset with {event.error_code}")
        elif isinstance(event, ConnectionTerminated):
            for stream in self.bodies:
                self.fail(stream, f"closed with {event.error_code:#x}: {event.reason_phrase}")

    async def move(self, address: str) -> None:
        """Goes on from another socket, with another connection id of the server (RFC 9000 9.5)."""
        opened = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        opened.bind((address if ":" in address else f"::ffff:{address}", 0, 0, 0))
        self._quic.change_connection_id()
        self._transport.close()
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, sock=opened)
        self.transmit()

    def fail(self, stream: int, why: str) -> None:
        future = self.bodies[stream][2]
        if not future.done():
            future.set_exception(ConnectionError(why))


async def download(client: Client, urls: list) -> list:
    """Downloads all URLs at once on one connection. Before the handshake the requests are early data."""
    futures = [client.fetch(urlsplit(url).path) for url in urls]
    client.transmit()
    results = await asyncio.gather(*futures)
    return [{"url": url, "bytes": size, "sha256": sha} for url, (size, sha) in zip(urls, results)]


async def run_client(options: argparse.Namespace, report: dict) -> None:
    where = urlsplit(options.urls[0])
    config = configuration(options, is_client=True)
    config.load_verify_locations(options.ca)
    config.verify_mode = ssl.CERT_REQUIRED
    config.server_name = where.hostname
    if options.foreign_version:
        config.original_version = RESERVED_VERSION
        # Keys are made for these only.
        config.supported_versions = [*config.supported_versions, RESERVED_VERSION]
    tickets, urls = [], options.urls
    if options.resume or options.early:
        async with connect(
            where.hostname,
            where.port,
            configuration=config,
            create_protocol=Client,
            session_ticket_handler=tickets.append,
        ) as client:
            report["downloads"] += await download(client, urls[:1])
            for _ in range(200):
                if tickets:
                    break
                await asyncio.sleep(0.01)
        if not tickets:
            raise ConnectionError("no ticket came")
        config.session_ticket = tickets[0]
        urls = urls[1:] or urls
    async with connect(
        where.hostname, where.port, configuration=config, create_protocol=Client, wait_connected=not options.early
    ) as client:
        client.update_keys, client.move_to = options.key_update, options.move
        report["downloads"] += await download(client, urls)
        tls = client._quic.tls
        report["resumed"] = tls.session_resumed
        report["early_data"] = tls.early_data_accepted
        report["version_negotiated"] = client._quic._version_negotiated_incompatible
        report["version"] = client._quic._version


def main() -> int:
    options = read_flags()
    if options.mode == "server":
        try:
            asyncio.run(run_server(options))
        except KeyboardInterrupt:
            pass
        return 0
    report = new_report()
    try:
        asyncio.run(asyncio.wait_for(run_client(options, report), 90))
    except Exception as error:  # whatever it is, it is reported
        report.update(ok=False, error=f"{type(error).__name__}: {error}")
    print_line(report)
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
