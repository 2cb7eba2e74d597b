//! Members that compute their group's assignment themselves: choose, prepare, install, over the wire.

use std::time::Duration;

use convoke::wire::assignment::install::InstalledMember;
use convoke::wire::error_code::ErrorCode;
use convoke_support::Result;
use kafka_protocol::protocol::StrBytes;
use tokio::time::{Instant, sleep};

use crate::participant::{ASSIGNOR, PARTITIONS, Participant, TOPIC, World, give};

const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_BEATS: Duration = Duration::from_millis(50);

/// All heartbeat in turn until it is as wanted.
async fn until(
    what: &str,
    members: &mut [&mut Participant],
    wanted: impl Fn(&[&mut Participant]) -> bool,
) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        for member in members.iter_mut() {
            member.beat().await?;
        }
        if wanted(members) {
            return Ok(());
        }
        if Instant::now() > deadline {
            let states = members
                .iter()
                .map(|member| (member.id.to_string(), member.epoch, member.partitions()));
            return Err(format!("{what} did not come: {:?}", states.collect::<Vec<_>>()).into());
        }
        sleep(BETWEEN_BEATS).await;
    }
}

fn chosen<'a>(members: &'a [&mut Participant]) -> Option<&'a Participant> {
    members.iter().map(|member| &**member).find(|member| member.is_chosen)
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_take_part_compute_and_are_told_what_their_assignor_says() -> Result<()> {
    let world = World::start()?;
    let mut one = Participant::join(&world, "group", "one", (0, 3)).await?;
    let mut other = Participant::join(&world, "group", "other", (0, 3)).await?;
    // The first may have been asked before the other came; whatever is computed then, this is what comes of both.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut members = [&mut one, &mut other];
        until("the choice of a member", &mut members, |members| {
            chosen(members).is_some()
        })
        .await?;
        let computing = chosen(&members).ok_or("nobody")?;
        let prepared = computing.prepare().await?;
        assert_eq!(prepared.error_code, 0, "{prepared:?}");
        assert_eq!(&*prepared.assignor_name, ASSIGNOR);
        assert_eq!(prepared.topics.len(), 1);
        assert_eq!(
            (&*prepared.topics[0].topic_name, prepared.topics[0].num_partitions),
            (TOPIC, PARTITIONS)
        );
        let both = prepared.members.len() == 2;
        let members = match both {
            true => vec![give(&prepared, "one", &[3]), give(&prepared, "other", &[0, 1, 2])],
            false => vec![give(&prepared, "one", &[0, 1, 2, 3])],
        };
        for member in &prepared.members {
            assert_eq!(member.assignor.metadata_version, 3);
            assert_eq!(member.assignor.metadata, member.member_id.as_bytes());
        }
        let installed = computing.install(prepared.group_epoch, 0, members).await?;
        assert_eq!(installed.error_code, 0, "{installed:?}");
        if both {
            break;
        }
        assert!(Instant::now() < deadline, "never asked for both");
    }
    until("the assignment", &mut [&mut one, &mut other], |members| {
        members[0].partitions() == [3] && members[1].partitions() == [0, 1, 2]
    })
    .await?;
    assert_eq!(one.told.metadata, "for one");
    assert_eq!(
        (other.told.metadata_version, &*other.told.metadata),
        (7, &b"for other"[..])
    );
    assert_eq!(one.epoch, other.epoch);
    // A reason asks for another one though nothing has changed.
    one.change_assignor(|assignor| assignor.reason = 1);
    let mut members = [&mut one, &mut other];
    until("another computation", &mut members, |members| chosen(members).is_some()).await?;
    let computing = chosen(&members).ok_or("nobody")?;
    let prepared = computing.prepare().await?;
    let members = vec![give(&prepared, "one", &[0, 1]), give(&prepared, "other", &[2, 3])];
    assert_eq!(computing.install(prepared.group_epoch, 0, members).await?.error_code, 0);
    until("the other assignment", &mut [&mut one, &mut other], |members| {
        members[0].partitions() == [0, 1] && members[1].partitions() == [2, 3]
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_rolling_upgrade_whoever_reads_every_version_computes() -> Result<()> {
    let world = World::start()?;
    let mut old = Participant::join(&world, "group", "old", (0, 0)).await?;
    let mut new = Participant::join(&world, "group", "new", (0, 1)).await?;
    // Only the new one can read what both say.
    until("the new one's choice", &mut [&mut old, &mut new], |members| {
        assert!(
            !(members[0].is_chosen && members[1].epoch > members[0].epoch),
            "the old one cannot"
        );
        members[1].is_chosen
    })
    .await?;
    let prepared = new.prepare().await?;
    assert_eq!(prepared.members.len(), 2);
    let versions: Vec<i16> = prepared
        .members
        .iter()
        .map(|member| member.assignor.metadata_version)
        .collect();
    assert_eq!(versions, [1, 0], "by id");
    let members = vec![give(&prepared, "new", &[0, 1]), give(&prepared, "old", &[2, 3])];
    assert_eq!(new.install(prepared.group_epoch, 0, members).await?.error_code, 0);
    until("the assignment", &mut [&mut old, &mut new], |members| {
        members[0].partitions() == [2, 3] && members[1].partitions() == [0, 1]
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_prepared_or_installed_is_refused_with_its_reason_and_changes_nothing() -> Result<()> {
    let world = World::start()?;
    let mut member = Participant::join(&world, "group", "member", (0, 0)).await?;
    until("the choice", &mut [&mut member], |members| members[0].is_chosen).await?;
    let text = |text: &'static str| StrBytes::from_static_str(text);
    let epoch = member.epoch;
    for (group, id, epoch, error) in [
        ("", "member", epoch, ErrorCode::INVALID_GROUP_ID),
        ("group", "", epoch, ErrorCode::INVALID_REQUEST),
        ("group", "member", -1, ErrorCode::INVALID_REQUEST),
        ("nothing", "member", epoch, ErrorCode::GROUP_ID_NOT_FOUND),
        ("group", "stranger", epoch, ErrorCode::UNKNOWN_MEMBER_ID),
        ("group", "member", epoch + 1, ErrorCode::STALE_MEMBER_EPOCH),
    ] {
        let answer = member.prepare_as(text(group), text(id), epoch).await?;
        assert_eq!(
            ErrorCode(answer.error_code),
            error,
            "{group:?} {id:?} {epoch}: {answer:?}"
        );
    }
    let prepared = member.prepare().await?;
    assert!(prepared.error_code == 0 && prepared.members.len() == 1, "{prepared:?}");
    let stale = member.install(prepared.group_epoch - 1, 0, Vec::new()).await?;
    assert_eq!(ErrorCode(stale.error_code), ErrorCode::INVALID_ASSIGNMENT, "{stale:?}");
    let all = [0, 1, 2, 3];
    let mut foreign = give(&prepared, "member", &all);
    foreign.partitions[0].topic_id = uuid::Uuid::from_u128(1);
    let strangers = vec![give(&prepared, "member", &all), give(&prepared, "stranger", &[])];
    refused(&member, strangers, "stranger").await?;
    refused(&member, vec![foreign], "00000000-0000-0000-0000-000000000001").await?;
    // That were three, so a server assignor has computed; the next computation is asked for.
    until("the server's", &mut [&mut member], |members| {
        members[0].partitions() == all
    })
    .await?;
    member.change_assignor(|assignor| assignor.reason = 1);
    until("another choice", &mut [&mut member], |members| members[0].is_chosen).await?;
    refused(&member, vec![give(&prepared, "member", &[0, 1, 2, 3, 99])], "99").await?;
    refused(&member, vec![give(&prepared, "member", &[0, 1, 2])], "3").await?;
    let prepared = member.prepare().await?;
    let installed = member
        .install(prepared.group_epoch, 0, vec![give(&prepared, "member", &all)])
        .await?;
    assert_eq!(installed.error_code, 0, "after all that: {installed:?}");
    until("what was installed", &mut [&mut member], |members| {
        members[0].told.metadata == "for member"
    })
    .await
}

/// Installs what is wrong, and is told so with these words.
async fn refused(member: &Participant, members: Vec<InstalledMember>, words: &str) -> Result<()> {
    let epoch = member.prepare().await?.group_epoch;
    let answer = member.install(epoch, 0, members).await?;
    let said = answer.error_message.as_deref().unwrap_or_default();
    assert_eq!(
        ErrorCode(answer.error_code),
        ErrorCode::INVALID_ASSIGNMENT,
        "{answer:?}"
    );
    assert!(said.contains(words), "{words:?} in {said:?}");
    Ok(())
}
