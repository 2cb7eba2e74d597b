//! Examples and properties of the assignors.

mod classic;
mod group;
mod movement;
mod range;
mod uniform;

use super::*;

#[test]
fn assignors_are_chosen_by_kafkas_names() {
    assert_eq!(Assignor::NAMES, ["uniform", "range"]);
    assert_eq!(Assignor::by_name("range"), Some(Assignor::Range));
    assert_eq!(Assignor::by_name("Uniform"), None);
}

#[test]
fn a_topic_of_unknown_size_is_an_error_that_names_it() {
    let topic = group::topic_id(3);
    for size in [None, Some(-1)] {
        let mut spec = group::Group::new(&[2], &[&[0, 3]]).spec();
        spec.topics.extend(size.map(|size| (topic, size)));
        for assignor in Assignor::ALL {
            assert_eq!(assignor.assign(&spec), Err(AssignorError::UnknownTopic(topic)));
        }
    }
}

#[test]
fn a_group_without_members_or_subscriptions_gets_nothing() {
    let nobody = group::Group::new(&[2], &[]);
    let indifferent = group::Group::new(&[2], &[&[], &[]]);
    for assignor in Assignor::ALL {
        assert_eq!(nobody.assign(assignor), Vec::<Vec<(usize, i32)>>::new());
        assert_eq!(indifferent.assign(assignor), [[], []]);
    }
}
