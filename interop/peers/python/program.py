"""The flags and the reports of the peers, the same for each."""

import argparse
import json


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["server", "client"])
    parser.add_argument("urls", nargs="*")
    for name in ["--listen", "--path"]:
        parser.add_argument(name, action="append", default=[])
    for name in ["--cert", "--key", "--root", "--ca", "--move"]:
        parser.add_argument(name)
    for name in ["--retry", "--chacha20", "--key-update", "--resume", "--foreign-version", "--second-version"]:
        parser.add_argument(name, action="store_true")
    parser.add_argument("--0rtt", action="store_true", dest="early")
    return parser.parse_intermixed_args()


def new_report() -> dict:
    """What a client prints at its end, before it has found out anything."""
    return {"ok": True, "downloads": [], "resumed": False, "early_data": False, "version_negotiated": False, "error": None}


def print_line(value: dict) -> None:
    print(json.dumps(value), flush=True)
