"""The line protocol of PROTOCOL.md, shared by the Python clients."""

import json
import sys
import threading
import time

_lock = threading.Lock()


def now():
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def say(event, **fields):
    with _lock:
        print(json.dumps({"event": event, "at": now(), **fields}), flush=True)


def close_on_command():
    """An event that is set when the scenario says `close`."""
    closing = threading.Event()

    def read():
        for line in sys.stdin:
            if line.strip() == "close":
                closing.set()

    threading.Thread(target=read, daemon=True).start()
    return closing


def config():
    return json.loads(sys.argv[1])
