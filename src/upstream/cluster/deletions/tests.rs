use super::*;
use crate::config::HostPort;
use crate::upstream::cluster::Topic;
use crate::wire::error_code::ErrorCode;

fn topics(entries: &[(&str, u128)]) -> Topics {
    let mut topics = Topics::default();
    for (name, id) in entries {
        topics.insert(Topic {
            name: Text::from(*name),
            id: Uuid::from_u128(*id),
            partitions: 1,
            racks: 0,
        });
    }
    topics
}

fn cluster(nodes: i32) -> Cluster {
    let address = |id: i32| HostPort {
        host: format!("b{id}"),
        port: 9092,
    };
    Cluster {
        nodes: (1..=nodes).map(|id| (id, address(id))).collect(),
        ..Cluster::default()
    }
}

const ID: Uuid = Uuid::from_u128(1);

/// A topic that has just vanished.
fn vanished() -> Deletions {
    let mut deletions = Deletions::default();
    deletions.compare(&topics(&[("t", 1), ("other", 2)]), &topics(&[("other", 2)]));
    deletions
}

fn names(deletions: &Deletions) -> Vec<(String, Uuid)> {
    let confirmed = deletions.confirmed();
    confirmed
        .iter()
        .map(|topic| (topic.name.to_string(), topic.id))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn two_denials_far_enough_apart_confirm_a_deletion() {
    let (mut deletions, cluster) = (vanished(), cluster(1));
    let first = Instant::now();
    assert_eq!(deletions.next_question(), None);
    assert_eq!(deletions.questions(1, &cluster, first), [ID]);
    deletions.answered(ID, 1, &TopicAnswer::Unknown, first);
    assert_eq!(names(&deletions), []);
    assert!(deletions.questions(1, &cluster, first).is_empty());
    assert_eq!(deletions.next_question(), Some(first + BETWEEN));
    let second = first + BETWEEN;
    assert_eq!(deletions.questions(1, &cluster, second), [ID]);
    deletions.answered(ID, 1, &TopicAnswer::Unknown, second);
    assert_eq!(names(&deletions), [("t".to_owned(), ID)]);
    assert!(deletions.questions(1, &cluster, second).is_empty());
    deletions.handed_over();
    assert_eq!(names(&deletions), []);
}

#[tokio::test(start_paused = true)]
async fn where_there_are_more_nodes_two_of_them_must_deny_it() {
    let (mut deletions, cluster) = (vanished(), cluster(3));
    let first = Instant::now();
    deletions.answered(ID, 2, &TopicAnswer::Unknown, first);
    let later = first + 10 * BETWEEN;
    assert!(deletions.questions(2, &cluster, later).is_empty());
    assert_eq!(deletions.questions(3, &cluster, later), [ID]);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_a_node_knows_is_not_deleted() {
    let mut deletions = vanished();
    let now = Instant::now();
    deletions.answered(ID, 1, &TopicAnswer::Unknown, now);
    let found = TopicAnswer::Found(topics(&[("t", 1)]).by_name["t"].clone());
    deletions.answered(ID, 1, &found, now + BETWEEN);
    deletions.answered(ID, 1, &TopicAnswer::Unknown, now + 2 * BETWEEN);
    assert_eq!(names(&deletions), []);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_we_may_not_see_any_more_is_not_deleted() {
    let (mut deletions, cluster) = (vanished(), cluster(1));
    let mut now = Instant::now();
    for _ in 0..10 {
        deletions.answered(ID, 1, &TopicAnswer::Unknown, now);
        now += BETWEEN;
        let hidden = TopicAnswer::Unclear(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
        deletions.answered(ID, 1, &hidden, now);
        now += BETWEEN;
    }
    assert_eq!(names(&deletions), []);
    assert_eq!(deletions.questions(1, &cluster, now), [ID]);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_is_listed_again_is_forgotten() {
    let mut deletions = vanished();
    let now = Instant::now();
    deletions.answered(ID, 1, &TopicAnswer::Unknown, now);
    deletions.compare(&topics(&[]), &topics(&[("t", 1)]));
    deletions.answered(ID, 1, &TopicAnswer::Unknown, now + BETWEEN);
    assert_eq!(names(&deletions), []);
}

#[tokio::test(start_paused = true)]
async fn another_id_under_the_same_name_is_a_deletion_of_the_old_one() {
    let mut deletions = Deletions::default();
    deletions.compare(&topics(&[("t", 1)]), &topics(&[("t", 9)]));
    let now = Instant::now();
    deletions.answered(ID, 1, &TopicAnswer::Unknown, now);
    deletions.answered(ID, 1, &TopicAnswer::Unknown, now + BETWEEN);
    assert_eq!(names(&deletions), [("t".to_owned(), ID)]);
}

#[tokio::test(start_paused = true)]
async fn a_topic_without_an_id_is_never_deleted() {
    let mut deletions = Deletions::default();
    deletions.compare(&topics(&[("t", 0)]), &topics(&[]));
    assert!(deletions.questions(1, &cluster(1), Instant::now()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_looked_for_and_listed_is_not_asked_for() {
    let mut deletions = Deletions::default();
    let wanted = [(ID, "t".into()), (Uuid::from_u128(2), "other".into())];
    deletions.look_for(wanted.into());
    let listed = topics(&[("other", 2)]);
    deletions.compare(&listed, &listed);
    assert_eq!(deletions.questions(1, &cluster(1), Instant::now()), [ID]);
}
