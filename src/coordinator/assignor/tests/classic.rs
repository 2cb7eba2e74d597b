//! The assignors of classic groups beside what Kafka's own classes placed (`tests/golden/ClassicAssignments.java`).

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;

use super::group::{Group, Partition, Subscriptions, groups, partitions};
use crate::coordinator::assignor::classic::TopicIds;
use crate::coordinator::assignor::{ClassicAssignor, GroupSpec, MemberSpec};
use crate::coordinator::partitions::Partitions;
use crate::coordinator::request::Text;

const GOLDEN: &str = include_str!("../../../../tests/golden/classic_assignments.txt");

fn list(text: &str, separator: char) -> impl Iterator<Item = &str> {
    text.split(separator).filter(|item| !item.is_empty() && *item != "-")
}

/// A group as a line of the golden file has it, with the ids of its topics.
fn group(topics: &str, members: &str) -> (GroupSpec, TopicIds) {
    let sizes: BTreeMap<Text, i32> = list(topics, ',')
        .map(|topic| topic.split_once('=').expect("a size"))
        .map(|(name, size)| (name.into(), size.parse().expect("a number")))
        .collect();
    let names: TopicIds = sizes.keys().cloned().collect();
    let member = |text: &str| {
        let (member, topics) = text.split_once(':').expect("topics");
        let (member_id, instance_id) = member.split_once('/').expect("an instance");
        let mut ids: Vec<Uuid> = list(topics, ',').filter_map(|name| names.id(name)).collect();
        ids.sort_unstable();
        MemberSpec {
            member_id: member_id.into(),
            instance_id: (instance_id != "-").then(|| instance_id.into()),
            rack_id: None,
            topics: ids.into(),
            target: Arc::default(),
        }
    };
    let spec = GroupSpec {
        members: list(members, ';').map(member).collect(),
        topics: names.iter().map(|(name, id)| (id, sizes[name])).collect(),
    };
    (spec, names)
}

/// As the golden file writes assignments.
fn written(spec: &GroupSpec, names: &TopicIds, targets: &[Arc<Partitions>]) -> String {
    let members = spec.members.iter().zip(targets).map(|(member, target)| {
        let topics = target.by_topic().map(|(id, numbers)| {
            let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
            format!("{}={}", names.name(&id).expect("a name"), numbers.join("+"))
        });
        let mut topics: Vec<String> = topics.collect();
        if topics.is_empty() {
            topics.push("-".into());
        }
        format!("{}:{}", member.member_id, topics.join(","))
    });
    members.collect::<Vec<_>>().join(";")
}

#[test]
fn range_and_roundrobin_place_what_kafkas_classes_place() {
    let mut compared = 0;
    for line in GOLDEN.lines() {
        let [name, topics, members, placed] = line.split(' ').collect::<Vec<_>>()[..] else {
            continue;
        };
        let assignor = ClassicAssignor::by_name(name)
            .filter(|assignor| matches!(assignor, ClassicAssignor::Range | ClassicAssignor::RoundRobin));
        let Some(assignor) = assignor else { continue };
        let (spec, names) = group(topics, members);
        let targets = assignor.assign(&spec).expect("all sizes are known");
        assert_eq!(written(&spec, &names, &targets), placed, "{line}");
        compared += 1;
    }
    assert_eq!(compared, 300);
}

#[test]
fn names_have_ids_that_lead_back_to_them_in_the_same_order() {
    for count in [0, 1, 2, 3, 4, 7, 8, 1_000] {
        let names: TopicIds = (0..count).map(|number| Text::from(format!("t{number:04}"))).collect();
        let ids: Vec<Uuid> = names.iter().map(|(_, id)| id).collect();
        assert_eq!(ids.len(), count);
        assert!(ids.is_sorted_by(|a, b| a < b));
        for (name, id) in names.iter() {
            assert_eq!((names.id(name), names.name(&id)), (Some(id), Some(name)));
        }
        assert_eq!(names.id("else"), None);
        assert_eq!(names.name(&Uuid::nil()), None);
        assert_eq!(names.name(&Uuid::max()), None);
    }
}

fn place(group: &Group, assignor: ClassicAssignor) -> Vec<Vec<Partition>> {
    let targets = assignor.assign(&group.spec()).expect("all sizes are known");
    targets.iter().map(|target| partitions(target)).collect()
}

proptest! {
    #[test]
    fn every_subscribed_partition_has_one_owner_that_subscribes_to_it(group in prop_oneof![
        groups(Subscriptions::Equal, 6, 8, 9),
        groups(Subscriptions::Any, 6, 8, 9),
    ]) {
        for assignor in ClassicAssignor::ALL {
            group.check(&place(&group, assignor));
        }
    }

    #[test]
    fn roundrobin_gives_members_of_one_subscription_as_much_within_one(group in groups(Subscriptions::Equal, 6, 8, 9)) {
        let sizes: Vec<usize> = place(&group, ClassicAssignor::RoundRobin).iter().map(Vec::len).collect();
        prop_assert!(sizes.iter().max() <= sizes.iter().min().map(|least| least + 1).as_ref());
    }

    #[test]
    fn sticky_places_again_what_it_placed(group in groups(Subscriptions::Any, 6, 8, 9)) {
        let mut settled = group;
        let first = place(&settled, ClassicAssignor::Sticky);
        for (member, target) in settled.members.values_mut().zip(&first) {
            member.target.clone_from(target);
        }
        prop_assert_eq!(place(&settled, ClassicAssignor::CooperativeSticky), first);
    }
}
