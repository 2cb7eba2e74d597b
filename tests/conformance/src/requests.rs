//! The group APIs that may reach the brokers, though every group of Kafka's tests is owned by Convoke.

use crate::results::Arrived;

/// An API, who sends it, and why it may.
#[rustfmt::skip]
const ALLOWED: [(&str, &str, &str); 7] = [
    ("OffsetFetch", "convoke", "the offsets of a group that is met for the first time"),
    ("ListGroups", "convoke", "whether such a group has members at the brokers"),
    ("DescribeGroups", "convoke", "which members those are"),
    ("ListGroups", "client", "groups that the brokers keep are in one list with Convoke's"),
    ("DescribeGroups", "client", "groups that Convoke does not know, and what a user may do with one, which only brokers know"),
    ("ConsumerGroupDescribe", "client", "groups that Convoke does not know"),
    ("DeleteGroups", "client", "the copy that a group left there when it was taken over goes with the group"),
];

/// Whether the brokers may have been asked this. What came past Convoke never may.
#[must_use]
pub fn is_allowed(request: &Arrived) -> bool {
    let allowed = |(api, sender, _): &(&str, &str, &str)| *api == request.api && *sender == request.sender;
    request.way == "front" && ALLOWED.iter().any(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(api: &str, sender: &str, way: &str) -> Arrived {
        Arrived {
            case: "a.B.c".to_owned(),
            api: api.to_owned(),
            sender: sender.to_owned(),
            way: way.to_owned(),
            count: 1,
        }
    }

    #[test]
    fn only_what_is_listed_reaches_the_brokers() {
        assert!(is_allowed(&arrived("OffsetFetch", "convoke", "front")));
        assert!(is_allowed(&arrived("ListGroups", "client", "front")));
        assert!(
            !is_allowed(&arrived("OffsetFetch", "client", "front")),
            "of an owned group"
        );
        assert!(!is_allowed(&arrived("JoinGroup", "convoke", "front")));
        assert!(!is_allowed(&arrived("ListGroups", "client", "direct")), "past Convoke");
    }
}
