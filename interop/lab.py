"""Network namespaces, links between them, and plait in them: what the scripts beside this file have in common."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEFAULT_PLAIT = HERE.parent / "target/release/plait"
PORT = 4433
TIME_LIMIT = 60
# What keeps IPv6 from speaking before it is asked to, and IPv4 from refusing what comes by another link than it would answer.
QUIET = ["net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"]
QUIET += ["net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0"]


class Failure(Exception):
    """Something that must hold does not."""


class Lab:
    """Namespaces of one script. Whatever ends it takes them away."""

    def __init__(self, name, roles, plait):
        self.name, self.plait = name, Path(plait)
        if os.geteuid() != 0:
            sys.exit(f"{name}: run as root: namespaces need it")
        for tool in ["ip", "sysctl"]:
            if not shutil.which(tool):
                sys.exit(f"{name}: install {tool} (apt-get install iproute2 procps)")
        if not os.access(self.plait, os.X_OK):
            sys.exit(f"{name}: no binary {plait}; cargo build --release -p plait-cli")
        self.spaces = {role: f"plait-{name}-{role}-{os.getpid()}" for role in roles}
        self.running, self.numbered = [], 0
        self.work = Path(tempfile.mkdtemp(prefix=f"plait-{name}-"))

    def __enter__(self):
        for way_out in [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]:
            signal.signal(way_out, lambda number, _: sys.exit(128 + number))
        try:
            for role, space in self.spaces.items():
                run("ip", "netns", "add", space)
                self.ip(role, "link set lo up")
                self.sysctl(role, *QUIET)
        except BaseException:
            self.clean_up()
            raise
        return self

    def __exit__(self, kind, error, _):
        self.clean_up()
        if kind is Failure:
            print(f"{self.name}: FAILED: {error}", file=sys.stderr)
            sys.exit(1)

    def clean_up(self):
        for way_out in [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]:
            signal.signal(way_out, signal.SIG_IGN)
        for process in self.running:
            self.stop(process)
        for space in self.spaces.values():
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.work, ignore_errors=True)

    @staticmethod
    def stop(process):
        process.terminate()
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def say(self, text):
        print(f"{self.name}: {text}", flush=True)

    def ip(self, role, command):
        """One command of `ip` in a namespace, as one would type it."""
        run("ip", "-n", self.spaces[role], *command.split())

    def tc(self, role, command):
        run("tc", "-n", self.spaces[role], *command.split())

    def sysctl(self, role, *settings):
        run("ip", "netns", "exec", self.spaces[role], "sysctl", "-qw", *settings)

    def background(self, command, **files):
        process = subprocess.Popen(command, **files)
        self.running.append(process)
        return process

    def wire(self, ends):
        """A cable between two namespaces. `ends` are two times role and device."""
        (one, first), (other, second) = ends
        run("ip", "link", "add", first, "netns", self.spaces[one], "type", "veth",
            "peer", "name", second, "netns", self.spaces[other])
        for role, device in ends:
            self.ip(role, f"link set {device} up")

    def shaped(self, ends, ways):
        """A link of link.py between two namespaces; `ways` are its directions, from the first end and from the second."""
        # Names of a kind that no other namespace script of this machine uses: the devices begin in ours.
        names = [f"plt{os.getpid()}{letter}{self.numbered}" for letter in "ab"]
        self.numbered += 1
        process = self.background([sys.executable, HERE / "link.py", *names, *ways], stdout=subprocess.PIPE, text=True)
        if process.stdout.readline().strip() != "ready":
            raise Failure("a link does not come up: is there /dev/net/tun?")
        for name, (role, device) in zip(names, ends):
            run("ip", "link", "set", name, "netns", self.spaces[role])
            self.ip(role, f"link set {name} name {device}")
            self.ip(role, f"link set {device} up")

    def received_bytes(self, role, device):
        return self.counter(role, device, "rx_bytes")

    def sent_bytes(self, role, device):
        return self.counter(role, device, "tx_bytes")

    def counter(self, role, device, name):
        path = f"/sys/class/net/{device}/statistics/{name}"
        return int(run("ip", "netns", "exec", self.spaces[role], "cat", path))

    def serve(self, listen, *options):
        """A server that is ready; `listen` are addresses, IPv6 in brackets."""
        places = [word for address in listen for word in ("--listen", f"{address}:{PORT}")]
        command = [self.plait, "serve", *places, "--identity", self.work / "identity", *options]
        said, log = self.work / "serve", open(self.work / "serve.err", "w")
        process = self.background(["ip", "netns", "exec", self.spaces["server"], *command], stdout=open(said, "w"), stderr=log)
        until(lambda: "listening" in said.read_text(), 10, "the server does not begin")
        return process

    def begin_get(self, url, *options):
        command = [self.plait, "get", url, "--insecure", "--discard", "--json", "--max-time", str(TIME_LIMIT), *options]
        command = ["ip", "netns", "exec", self.spaces["client"], *command]
        return self.background(command, stdout=subprocess.PIPE, stderr=open(self.work / "get.err", "w"), text=True)

    def end_get(self, process):
        """What `get` says at its end; a download that failed is a failure."""
        said, _ = process.communicate()
        self.running.remove(process)
        if process.returncode != 0:
            raise Failure(f"get ended with {process.returncode}: {said}\n{(self.work / 'get.err').read_text()}")
        return json.loads(said.strip().splitlines()[-1])

    def get(self, url, *options):
        return self.end_get(self.begin_get(url, *options))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def until(holds, seconds, complaint):
    """Waits for a condition."""
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            raise Failure(complaint)
        time.sleep(0.02)


def median(values):
    return statistics.median(values)
