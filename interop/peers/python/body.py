"""The body behind `/bytes/N`, made again from its definition, and the answers of a server."""

from pathlib import Path

PERIOD = 1_048_573
UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "K": 10**3, "M": 10**6, "G": 10**9}


def make_block() -> bytes:
    """One period of the body behind /bytes/N: the top byte of x -> x * 0xd1342543de82ef95 + 1 modulo 2^64."""
    block, x = bytearray(PERIOD), 0x9E3779B97F4A7C15
    for i in range(PERIOD):
        x = (x * 0xD1342543DE82EF95 + 1) & 0xFFFFFFFFFFFFFFFF
        block[i] = x >> 56
    return bytes(block)


def parse_size(text: str) -> int:
    for suffix, factor in UNITS.items():
        if text.endswith(suffix):
            return int(text[: -len(suffix)]) * factor
    return int(text)


def answer_to(line: str, root: str | None, block: bytes) -> bytes:
    """What a server sends for this request; ValueError or OSError where there is nothing to send."""
    method, _, target = line.partition(" ")
    if method != "GET" or not target.startswith("/"):
        raise ValueError(f"not a request: {line!r}")
    if target.startswith("/bytes/"):
        size = parse_size(target.removeprefix("/bytes/"))
        return (block * (size // PERIOD + 1))[:size]
    name = Path(target.lstrip("/"))
    if root is None or ".." in name.parts:
        raise ValueError(f"nothing at {target}")
    return (Path(root) / name).read_bytes()
