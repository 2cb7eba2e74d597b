use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use uuid::Uuid;

use super::kit::*;
use crate::coordinator::input::{ImportedOffset, UpstreamGroup};
use crate::coordinator::request::{Response, Text};
use crate::wire::error_code::ErrorCode;

#[tokio::test(start_paused = true)]
async fn offsets_of_a_vacant_group_are_taken_over() {
    let inspector = TestInspector::new();
    let imported = ImportedOffset {
        topic: Text::from("orders"),
        topic_id: Uuid::nil(),
        partition: 3,
        offset: 99,
        leader_epoch: -1,
        metadata: Text::from(""),
    };
    inspector.says(
        "g",
        Ok(UpstreamGroup {
            offsets: vec![imported],
            ..vacant()
        }),
    );
    let coordinator = start_with(&TestStore::new(), inspector, 1);
    loaded(&coordinator).await;
    assert_eq!(
        offsets(coordinator.call("g", fetch("g")).await),
        BTreeMap::from([(3, 99)])
    );
}

#[tokio::test(start_paused = true)]
async fn a_group_is_unavailable_while_the_upstream_cannot_be_asked_or_the_question_fails() {
    let inspector = TestInspector::new();
    inspector.says("g", Err(out_of_reach()));
    let coordinator = start_with(&TestStore::new(), inspector, 1);
    loaded(&coordinator).await;
    for group_id in ["g", "panic"] {
        assert_eq!(
            coordinator.call(group_id, fetch(group_id)).await,
            unavailable(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
        );
    }
    assert!(matches!(
        coordinator.call("h", fetch("h")).await,
        Response::OffsetFetch(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn so_many_groups_are_asked_about_at_a_time_and_no_more() {
    let mut inspector = TestInspector::new();
    inspector.takes = Duration::from_millis(100);
    let most = Arc::clone(&inspector.most_running);
    let coordinator = start_with(&TestStore::new(), inspector, 8);
    loaded(&coordinator).await;
    let requests = (0..500).map(|number| {
        let group_id = format!("group-{number}");
        (Text::from(group_id.as_str()), fetch(&group_id))
    });
    for response in coordinator.call_many(requests.collect()).await {
        assert!(offsets(response).is_empty());
    }
    assert_eq!(most.load(Ordering::SeqCst), 200);
}
