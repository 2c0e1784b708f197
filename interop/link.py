#!/usr/bin/env python3
"""A link in real time between two TUN devices: each direction has a rate, a delay and a queue, or carries nothing.

    link.py DEVICE_A DEVICE_B FROM_A FROM_B

FROM_A and FROM_B are RATE_MBPS,DELAY_MS,QUEUE_BYTES or `dead`. The devices are made in this namespace; the line `ready` says that
they may be moved to others. They go when this program ends. What it does to a packet is what the simulator's link does:
one at a time in service, the rest waits, and what finds no room is dropped. Sizes are those of IP packets.
"""

import fcntl
import os
import select
import signal
import struct
import sys
import time
from collections import deque

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
PACKET_BYTES_MAX = 65536
# Packets read before others get a turn.
TURN = 64


class OneWay:
    """From one device to the other."""

    def __init__(self, text, source, target):
        self.source, self.target, self.is_dead = source, target, text == "dead"
        rate, delay, queue = (1.0, 0.0, 0) if self.is_dead else (float(part) for part in text.split(","))
        self.seconds_a_byte, self.delay, self.queue_bytes = 8e-6 / rate, delay / 1e3, queue
        # Times at which service begins, and sizes, of what waits.
        self.waiting, self.waiting_bytes = deque(), 0
        self.free_at, self.under_way = 0.0, deque()

    def read(self):
        for _ in range(TURN):
            try:
                packet = os.read(self.source, PACKET_BYTES_MAX)
            except BlockingIOError:
                return
            except OSError:
                # The device is down.
                return
            if not self.is_dead:
                self.admit(packet, time.monotonic())

    def admit(self, packet, now):
        while self.waiting and self.waiting[0][0] <= now:
            self.waiting_bytes -= self.waiting.popleft()[1]
        begins = max(now, self.free_at)
        if begins > now:
            if self.waiting_bytes + len(packet) > self.queue_bytes:
                return
            self.waiting.append((begins, len(packet)))
            self.waiting_bytes += len(packet)
        self.free_at = begins + len(packet) * self.seconds_a_byte
        self.under_way.append((self.free_at + self.delay, packet))

    def deliver(self, now):
        while self.under_way and self.under_way[0][0] <= now:
            try:
                os.write(self.target, self.under_way.popleft()[1])
            except OSError:
                # Nobody is there: lost.
                pass

    def due(self):
        return self.under_way[0][0] if self.under_way else None


def device(name):
    opened = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(opened, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return opened


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    a, b = device(sys.argv[1]), device(sys.argv[2])
    ways = [OneWay(sys.argv[3], a, b), OneWay(sys.argv[4], b, a)]
    print("ready", flush=True)
    parent = os.getppid()
    while os.getppid() == parent:
        now = time.monotonic()
        for way in ways:
            way.deliver(now)
        due = [at for at in (way.due() for way in ways) if at is not None]
        pause = min(0.5, max(0.0, min(due) - time.monotonic())) if due else 0.5
        ready, _, _ = select.select([a, b], [], [], pause)
        for way in ways:
            if way.source in ready:
                way.read()


if __name__ == "__main__":
    main()
