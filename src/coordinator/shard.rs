//! One shard: the groups that hash to one partition of `__consumer_offsets`.
