#!/usr/bin/env python3
"""Lets members read from their own zone: less traffic between zones to pay for, where brokers let consumers fetch from the
nearest replica (`replica.selector.class`, KIP-392).

    convoke assignor --bootstrap convoke:9092 --group orders --name zone-affine --stream \\
        -- python3 config/assignors/zone_affine.py

A member's zone is its `client.rack`, a partition's zones are the `broker.rack` of its replicas. Nobody has more than one
partition more than another for it (as far as subscriptions allow): zones come second to balance, and moving as little as
possible comes third.
"""

import argparse

from assignor import balance, serve


def assign(group):
    zone = {member["id"]: member["rack"] for member in group.members}
    racks = group.each_partition("racks")

    def is_near(partition, member_id):
        return zone[member_id] is not None and zone[member_id] in racks.get(partition, ())

    owners = group.owners
    while True:
        owners = balance(group, owners, dict.fromkeys(group.may_have, 1), dict.fromkeys(group.ids, 1))
        # Where subscriptions differ, members that changed places may let others be balanced better, which is never undone.
        if not bring_near(group, owners, is_near):
            return owners


def bring_near(group, owners, is_near):
    """Gives partitions to members in one of their zones, in exchange for others or to who has fewer. Says whether it did."""
    owned = {member_id: set() for member_id in group.ids}
    for partition, owner in owners.items():
        owned[owner].add(partition)

    def give(partition, to):
        owned[owners[partition]].remove(partition)
        owned[to].add(partition)
        owners[partition] = to

    def bring(partition):
        owner = owners[partition]
        for to in sorted(m for m in group.may_have[partition] if is_near(partition, m)):
            if len(owned[to]) < len(owned[owner]):
                give(partition, to)
                return True
            # What that one has and is far from, too; best what is near to this one.
            others = [q for q in owned[to] if owner in group.may_have[q] and not is_near(q, to)]
            if others:
                give(min(others, key=lambda q: (not is_near(q, owner), q)), owner)
                give(partition, to)
                return True
        return False

    # Each success brings one more partition near to its member and takes none away from one, so this ends.
    is_better = False
    while any([bring(partition) for partition in sorted(owners) if not is_near(partition, owners[partition])]):
        is_better = True
    return is_better


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    serve(assign)
