#!/usr/bin/env python3
"""Gives members partitions in proportion to what they can do.

    convoke assignor --bootstrap convoke:9092 --group orders --name capacity-weighted --stream \\
        -- python3 config/assignors/capacity_weighted.py --capacity 'big-*=4' --capacity 'canary=0.5'

A capacity is matched with the member's `group.instance.id`, or where it has none with its `client.rack`; the first that fits
counts, and who fits none has capacity 1. A client that sends metadata of its own may send {"capacity": 4} instead. As few
partitions move as the shares allow.
"""

import argparse
import base64
import fnmatch
import json

from assignor import balance, serve


def capacities(group, rules):
    return {member["id"]: capacity_of(member, rules) for member in group.members}


def capacity_of(member, rules):
    try:
        said = json.loads(base64.b64decode(member["metadata"]["data"]))
        if said["capacity"] > 0:
            return float(said["capacity"])
    except (ValueError, KeyError, TypeError):
        pass  # It sends no metadata, or metadata of another kind.
    name = member["instance_id"] or member["rack"] or ""
    return next((capacity for pattern, capacity in rules if fnmatch.fnmatchcase(name, pattern)), 1.0)


def assign(group, rules=()):
    return balance(group, group.owners, dict.fromkeys(group.may_have, 1), capacities(group, rules))


def rule(text):
    pattern, _, capacity = text.rpartition("=")
    try:
        capacity = float(capacity)
    except ValueError:
        capacity = 0
    if not pattern or not capacity > 0:
        raise argparse.ArgumentTypeError(f"write PATTERN=CAPACITY with a capacity above 0, not {text!r}")
    return pattern, capacity


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capacity", action="append", type=rule, default=[], metavar="PATTERN=CAPACITY")
    arguments = parser.parse_args()
    serve(lambda group: assign(group, arguments.capacity))
