#!/usr/bin/env python3
"""An assignor that does what a file tells it: the first argument is the file, its content a word.

`good` gives partition 0 of each topic to the member in the rack `one` and the others to the one in the rack `rest`, which no
assignor of Kafka's would; everything else is one of the ways in which somebody's program goes wrong.
"""

import json
import pathlib
import sys
import time

mode = pathlib.Path(sys.argv[1]).read_text().strip()
question = json.load(sys.stdin)
print(f"mode {mode} for epoch {question['group_epoch']}", file=sys.stderr)


def place():
    by_rack = {member["rack"]: member["id"] for member in question["members"]}
    rest = by_rack.get("rest") or question["members"][0]["id"]
    assignment = {member["id"]: {} for member in question["members"]}
    for topic in question["topics"]:
        for partition in range(topic["partitions"]):
            owner = by_rack.get("one", rest) if partition == 0 else rest
            assignment[owner].setdefault(topic["name"], []).append(partition)
    return assignment


if mode == "crash":
    sys.exit(3)
if mode in ("hang", "late"):
    time.sleep(1000 if mode == "hang" else 8)
if mode == "nonsense":
    print("eeny, meeny, miny, moe")
    sys.exit(0)
if mode == "declined":
    print(json.dumps({"version": 1, "error": "not on a Sunday"}))
    sys.exit(0)
assignment = place()
if mode == "refused":
    first = next(iter(assignment))
    assignment[first] = {topic["name"]: [99] for topic in question["topics"]}
print(json.dumps({"version": 1, "assignment": assignment}))
