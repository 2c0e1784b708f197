"""What the runner's network simulator does, as a relay on loopback between one client and the server."""

import asyncio
import heapq
import itertools
import random
import socket
import threading
from dataclasses import dataclass


@dataclass
class Weather:
    """What the relay does to datagrams. Counts of bytes are of those sent by the server."""

    delay: float = 0.0
    loss: float = 0.0
    corruption: float = 0.0
    # Nothing passes for `silence` seconds once so many bytes have passed.
    silent_after: int = 0
    silence: float = 0.0
    # The client's address as the server sees it changes whenever so many bytes have passed.
    rebind_every: int = 0
    rebind_hosts: tuple = ("127.0.0.1",)


class Relay(threading.Thread):
    """Passes datagrams between one client and the server."""

    def __init__(self, weather, server_port):
        super().__init__(daemon=True)
        self.weather, self.server = weather, ("127.0.0.1", server_port)
        self.random = random.Random(1)
        self.front = self.open("127.0.0.1")
        self.back = self.open("127.0.0.1")
        self.port = self.front.getsockname()[1]
        self.client, self.passed, self.rebound, self.silent_until = None, 0, 0, None
        self.queue, self.order, self.stopped = [], itertools.count(), False

    @staticmethod
    def open(host):
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.bind((host, 0))
        opened.setblocking(False)
        for option in [socket.SO_RCVBUF, socket.SO_SNDBUF]:
            opened.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
        return opened

    def run(self):
        asyncio.run(self.relay())

    async def relay(self):
        self.loop, self.wake = asyncio.get_running_loop(), asyncio.Event()
        self.loop.add_reader(self.front, self.read, self.front)
        self.loop.add_reader(self.back, self.read, self.back)
        while not self.stopped:
            now = self.loop.time()
            while self.queue and self.queue[0][0] <= now:
                self.send(*heapq.heappop(self.queue)[2:])
            pause = min(0.05, max(0.0, self.queue[0][0] - now)) if self.queue else 0.05
            try:
                await asyncio.wait_for(self.wake.wait(), pause)
            except TimeoutError:
                pass
            self.wake.clear()

    def read(self, source):
        for _ in range(64):
            if source not in (self.front, self.back):
                # Rebound meanwhile: what still waits there is lost.
                return
            try:
                data, sender = source.recvfrom(65536)
            except (BlockingIOError, ConnectionError):
                return
            to_server = source is self.front
            if to_server:
                self.client = sender
            else:
                self.count(len(data))
            if self.is_silent() or self.random.random() < self.weather.loss:
                continue
            if self.random.random() < self.weather.corruption:
                at = self.random.randrange(len(data))
                data = data[:at] + bytes([data[at] ^ (1 + self.random.randrange(255))]) + data[at + 1 :]
            if self.weather.delay:
                heapq.heappush(self.queue, (self.loop.time() + self.weather.delay, next(self.order), to_server, data))
                self.wake.set()
            else:
                self.send(to_server, data)

    def count(self, size):
        before, self.passed = self.passed, self.passed + size
        weather = self.weather
        if weather.silent_after and before < weather.silent_after <= self.passed:
            self.silent_until = self.loop.time() + weather.silence
        if weather.rebind_every and before // weather.rebind_every != self.passed // weather.rebind_every:
            self.rebind()

    def is_silent(self):
        return self.silent_until is not None and self.loop.time() < self.silent_until

    def rebind(self):
        self.rebound += 1
        self.loop.remove_reader(self.back)
        self.back.close()
        hosts = self.weather.rebind_hosts
        self.back = self.open(hosts[self.rebound % len(hosts)])
        self.loop.add_reader(self.back, self.read, self.back)

    def send(self, to_server, data):
        try:
            if to_server:
                self.back.sendto(data, self.server)
            elif self.client:
                self.front.sendto(data, self.client)
        except OSError:
            # A full buffer loses datagrams, as networks do.
            pass
