#!/usr/bin/env python3
"""Shares the group's lag evenly instead of the number of partitions.

    convoke assignor --bootstrap convoke:9092 --group 'orders-*' --name lag-balanced --every 60s --stream \\
        -- python3 config/assignors/lag_balanced.py

A partition weighs its lag and one more, so that partitions without lag are shared evenly, too. Partitions stay where they
are unless the member with most to do has more than `--tolerance` above the average: moving a partition costs its consumer
a pause. With `--every` the assignment follows the lag; without it, it is made anew only when the group changes.
"""

import argparse

from assignor import balance, serve


def assign(group, tolerance=0.2):
    lags = group.each_partition("lag")
    weight = {partition: (lags.get(partition) or 0) + 1 for partition in group.may_have}
    return balance(group, group.owners, weight, dict.fromkeys(group.ids, 1), tolerance)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tolerance", type=float, default=0.2, help="how far above the average is no reason to move")
    arguments = parser.parse_args()
    serve(lambda group: assign(group, arguments.tolerance))
