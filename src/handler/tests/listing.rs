//! ListGroups: each group by one node, and the upstream's own beside ours.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{ListGroupsRequest, ListGroupsResponse};

use super::groups::commits;
use super::kit::*;
use super::membership::joined;
use crate::runtime::shard_of;
use crate::wire::api::LIST_GROUPS;

fn listed(group_id: &str, state: &str) -> ListedGroup {
    ListedGroup::default()
        .with_group_id(string(group_id).into())
        .with_protocol_type(string("consumer"))
        .with_group_state(string(state))
        .with_group_type(string("classic"))
}

fn lists(groups: Vec<ListedGroup>) -> Upstream {
    let response = ListGroupsResponse::default().with_groups(groups);
    Upstream::answering(move |asked| encode(&response, asked.version))
}

async fn list(setup: &Setup, version: i16, request: &ListGroupsRequest, upstream: &mut Upstream) -> ListGroupsResponse {
    setup
        .exchange(LIST_GROUPS, version, encode(request, version), upstream)
        .await
        .0
}

fn ids(response: &ListGroupsResponse) -> BTreeSet<String> {
    let ids: BTreeSet<_> = response.groups.iter().map(|group| group.group_id.to_string()).collect();
    assert_eq!(ids.len(), response.groups.len(), "no group twice");
    ids
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// A setup with a group in each of the four shards, the first with a member.
async fn populated(options: Options) -> Setup {
    let setup = Setup::with(options);
    setup.loaded().await;
    for (shard, group_id) in ["d", "a", "b", "c"].into_iter().enumerate() {
        assert_eq!(shard_of(group_id, 4).0 as usize, shard);
        commits(&setup, group_id).await;
    }
    joined(&setup, "d", 9).await;
    setup
}

async fn by_node(setup: &mut Setup, node_id: Option<i32>) -> BTreeSet<String> {
    setup.caller.node_id = node_id;
    ids(&list(setup, 5, &ListGroupsRequest::default(), &mut lists(Vec::new())).await)
}

#[tokio::test]
async fn each_group_is_listed_by_its_coordinator_and_by_no_other_node() {
    let mut setup = populated(Options::default()).await;
    // Coordinators are 1, 2, 1, none; the lowest node stands in for none.
    assert_eq!(by_node(&mut setup, Some(1)).await, set(&["d", "b", "c"]));
    assert_eq!(by_node(&mut setup, Some(2)).await, set(&["a"]));
    assert_eq!(by_node(&mut setup, None).await, set(&["a", "b", "c", "d"]));
}

#[tokio::test]
async fn one_node_lists_everything_while_there_is_no_offsets_topic() {
    let options = Options {
        coordinators: Vec::new(),
        ..Options::default()
    };
    let mut setup = populated(options).await;
    assert_eq!(by_node(&mut setup, Some(1)).await, set(&["a", "b", "c", "d"]));
    assert_eq!(by_node(&mut setup, Some(2)).await, set(&[]));
}

#[tokio::test]
async fn every_version_shows_what_it_has_room_for() {
    let setup = populated(Options::default()).await;
    for version in versions::<ListGroupsRequest>() {
        let mut upstream = lists(vec![listed("theirs", "Stable"), listed("a", "Empty")]);
        let response = list(&setup, version, &ListGroupsRequest::default(), &mut upstream).await;
        assert_eq!(response.error_code, 0);
        assert_eq!(
            ids(&response),
            set(&["d", "b", "c", "theirs"]),
            "v{version}: a stale copy of ours is not listed"
        );
        let group = |id: &str| {
            response
                .groups
                .iter()
                .find(|group| group.group_id.as_str() == id)
                .expect("listed")
        };
        assert_eq!(group("theirs").protocol_type.as_str(), "consumer");
        assert_eq!(group("d").protocol_type.as_str(), "consumer");
        assert_eq!(group("c").group_state.as_str(), if version >= 4 { "Empty" } else { "" });
        assert_eq!(
            group("c").group_type.as_str(),
            if version >= 5 { "classic" } else { "" }
        );
        assert_eq!(upstream.asked[0].version, version);
    }
}

#[tokio::test]
async fn filters_hold_for_ours_and_go_to_the_upstream() {
    let setup = populated(Options::default()).await;
    let by_state = ListGroupsRequest::default().with_states_filter(vec![string("empty")]);
    for version in 4..=5 {
        let mut upstream = lists(vec![listed("theirs", "Empty")]);
        let response = list(&setup, version, &by_state, &mut upstream).await;
        assert_eq!(ids(&response), set(&["b", "c", "theirs"]), "v{version}");
        let asked: ListGroupsRequest = upstream.asked[0].decode();
        assert_eq!(asked.states_filter, [string("empty")]);
    }
    let by_type = ListGroupsRequest::default().with_types_filter(vec![string("share")]);
    let mut upstream = lists(vec![listed("theirs", "Stable")]);
    assert_eq!(ids(&list(&setup, 5, &by_type, &mut upstream).await), set(&["theirs"]));
}

#[tokio::test]
async fn an_upstream_that_cannot_filter_is_filtered_here() {
    for (newest, asked_for_types, expected) in [
        (4, &["classic"] as &[&str], set(&["b", "c", "d", "theirs"])),
        (4, &["share"], set(&[])),
        (5, &["share"], set(&["theirs"])),
    ] {
        let options = Options {
            versions: BTreeMap::from([(LIST_GROUPS, (0, newest))]),
            ..Options::default()
        };
        let setup = populated(options).await;
        let types = asked_for_types.iter().map(|name| string(name)).collect();
        let request = ListGroupsRequest::default().with_types_filter(types);
        let response = list(&setup, 5, &request, &mut lists(vec![listed("theirs", "Stable")])).await;
        assert_eq!(
            ids(&response),
            expected,
            "upstream v{newest}, types {asked_for_types:?}"
        );
        let their = response.groups.iter().find(|group| group.group_id.as_str() == "theirs");
        assert!(their.is_none_or(|group| group.group_type.as_str() == "classic"));
    }
    let options = Options {
        versions: BTreeMap::from([(LIST_GROUPS, (0, 3))]),
        ..Options::default()
    };
    let setup = populated(options).await;
    let request = ListGroupsRequest::default().with_states_filter(vec![string("Empty")]);
    let response = list(&setup, 4, &request, &mut Upstream::unused()).await;
    assert_eq!(ids(&response), set(&["b", "c"]));
}

#[tokio::test]
async fn half_a_list_is_no_list() {
    let setup = populated(Options::default()).await;
    for version in versions::<ListGroupsRequest>() {
        let response = list(&setup, version, &ListGroupsRequest::default(), &mut Upstream::gone()).await;
        assert_eq!((response.error_code, response.groups.len()), (15, 0), "v{version}");
        let refuses = ListGroupsResponse::default().with_error_code(14);
        let mut upstream = Upstream::answering(move |asked| encode(&refuses, asked.version));
        let response = list(&setup, version, &ListGroupsRequest::default(), &mut upstream).await;
        assert_eq!((response.error_code, response.groups.len()), (14, 0), "v{version}");
    }
}
