"""What every assignor for `convoke assignor` needs: the loop around it, and who may have what.

An assignor is a function from a question to an assignment. `serve` reads questions from standard input, a line each, and
writes answers to standard output, a line each, so that a script works with and without `--stream`. What it prints on
standard error goes to the log of `convoke assignor`.
"""

import json
import sys


class Group:
    """One question, with the things that assignors ask of it."""

    def __init__(self, question):
        self.members = question["members"]
        self.topics = question["topics"]
        self.ids = sorted(member["id"] for member in self.members)
        # Every partition that somebody subscribes to, and who may have it.
        self.may_have = {}
        for topic in self.topics:
            may = sorted(member["id"] for member in self.members if topic["name"] in member["topics"])
            for partition in range(topic["partitions"] if may else 0):
                self.may_have[topic["name"], partition] = may
        # Who is to have a partition until now, as far as that is still allowed.
        self.owners = {}
        for member in sorted(self.members, key=lambda member: member["id"]):
            for topic, partitions in member["target"].items():
                for partition in partitions:
                    if member["id"] in self.may_have.get((topic, partition), ()):
                        self.owners.setdefault((topic, partition), member["id"])

    def each_partition(self, field):
        """A field of the topics that has a value for each partition, by partition."""
        return {
            (topic["name"], partition): value
            for topic in self.topics
            for partition, value in enumerate(topic[field])
        }


def balance(group, owners, weight, capacity, tolerance=0.0):
    """Who has what so that each member's load (the sum of its partitions' weights) is in proportion to its capacity.

    What is in `owners` stays with its owner, unless that one is more than `tolerance` above the average and giving a partition away
    helps. On its own result it changes nothing.
    """
    former_owners, owners = owners, {}
    load = dict.fromkeys(group.ids, 0)
    owned = {member_id: set() for member_id in group.ids}

    def pressure(member_id, more=0):
        return (load[member_id] + more) / capacity[member_id]

    def give(partition, member_id):
        owners[partition] = member_id
        owned[member_id].add(partition)
        load[member_id] += weight[partition]

    def best_taker(partition):
        return min(group.may_have[partition], key=lambda member_id: (pressure(member_id, weight[partition]), member_id))

    for partition, owner in former_owners.items():
        give(partition, owner)
    # The heaviest first; of equal ones those that fewest may have.
    free = [partition for partition in group.may_have if partition not in owners]
    for partition in sorted(free, key=lambda p: (-weight[p], len(group.may_have[p]), p)):
        give(partition, best_taker(partition))

    def best_move(limit):
        for crowded in sorted(group.ids, key=lambda member_id: (-pressure(member_id), member_id)):
            if pressure(crowded) <= limit:
                return None
            moves = ((pressure(best_taker(p), weight[p]), p) for p in owned[crowded])
            higher, partition = min(moves, default=(None, None))
            # The higher of the two loads gets smaller with each move, so this ends.
            if partition is not None and higher < pressure(crowded) and best_taker(partition) != crowded:
                return partition
        return None

    average = sum(load.values()) / max(sum(capacity.values()), 1e-9)
    while (partition := best_move((1 + tolerance) * average)) is not None:
        former = owners[partition]
        to = best_taker(partition)
        owned[former].remove(partition)
        load[former] -= weight[partition]
        give(partition, to)
    return owners


def as_assignment(ids, owners):
    """{(topic, partition): member id} as the answer wants it."""
    assignment = {member_id: {} for member_id in ids}
    for (topic, partition), member_id in sorted(owners.items()):
        assignment[member_id].setdefault(topic, []).append(partition)
    return assignment


def serve(assign):
    """Answers every question with what `assign(Group)` returns: {(topic, partition): member id}."""
    for line in sys.stdin:
        if not line.strip():
            continue
        group = Group(json.loads(line))
        answer = {"version": 1, "assignment": as_assignment(group.ids, assign(group))}
        print(json.dumps(answer, separators=(",", ":")), flush=True)
