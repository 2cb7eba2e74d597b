//! Members that share a topic, come and go.

use convoke_support::Result;
use serde_json::{Value, json};

use crate::member::{Member, produce, produce_with, read_all, settle, values};
use crate::stage::Stage;
use crate::stock::Stock;

pub fn reads_everything_once(stage: &mut Stage, stock: Stock) -> Result<()> {
    reads_everything_once_with(stage, stock, &json!({}))
}

/// `extra` are further keys of the line protocol, for the producer too.
pub fn reads_everything_once_with(stage: &mut Stage, stock: Stock, extra: &Value) -> Result<()> {
    let (topic, group) = (stage.topic(3)?, stage.name("group"));
    produce_with(stage, stock, &topic, 3, "a", 300, extra)?;
    let mut member = Member::consumer(stage, stock, &group, &topic, extra)?;
    let twice = read_all(&mut [&mut member], &values("a", 300))?;
    assert_none(&twice, "read twice")?;
    member.until_committed(300)?;
    member.close()?;
    // Another member of the group finds nothing left, and what comes later once.
    produce_with(stage, stock, &topic, 3, "b", 30, extra)?;
    let mut member = Member::consumer(stage, stock, &group, &topic, extra)?;
    let twice = read_all(&mut [&mut member], &values("b", 30))?;
    assert_none(&twice, "read twice")?;
    assert_none(&from(&member, "a-"), "read again by the next member")?;
    assert_none(&member.told.errors, "told as errors")?;
    member.close()
}

pub fn produces_with_fewer_acks(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(2)?, stage.name("group"));
    for acks in ["0", "1"] {
        produce_with(
            stage,
            stock,
            &topic,
            2,
            &format!("acks{acks}"),
            100,
            &json!({"acks": acks}),
        )?;
    }
    let mut member = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    let mut wanted = values("acks0", 100);
    wanted.extend(values("acks1", 100));
    read_all(&mut [&mut member], &wanted)?;
    member.close()
}

pub fn two_members_share(stage: &mut Stage, stock: Stock, assignor: &str) -> Result<()> {
    two_members_share_with(stage, stock, &json!({"assignor": assignor}))
}

/// `extra` are further keys of the line protocol.
pub fn two_members_share_with(stage: &mut Stage, stock: Stock, extra: &Value) -> Result<()> {
    let (topic, group) = (stage.topic(4)?, stage.name("group"));
    let mut first = Member::consumer(stage, stock, &group, &topic, extra)?;
    settle(&mut [&mut first], &topic, 4)?;
    let mut second = Member::consumer(stage, stock, &group, &topic, extra)?;
    settle(&mut [&mut first, &mut second], &topic, 4)?;
    assert_eq_len(&first, 2)?;
    assert_eq_len(&second, 2)?;
    produce_with(stage, stock, &topic, 4, "a", 200, extra)?;
    let twice = read_all(&mut [&mut first, &mut second], &values("a", 200))?;
    assert_none(&twice, "read twice")?;
    first.close()?;
    second.close()
}

pub fn member_leaves_and_comes_back(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(4)?, stage.name("group"));
    let mut first = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    let mut second = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    settle(&mut [&mut first, &mut second], &topic, 4)?;
    second.close()?;
    settle(&mut [&mut first], &topic, 4)?;
    produce(stage, stock, &topic, 4, "alone", 40)?;
    read_all(&mut [&mut first], &values("alone", 40))?;
    let mut second = Member::consumer(stage, stock, &group, &topic, &json!({}))?;
    settle(&mut [&mut first, &mut second], &topic, 4)?;
    produce(stage, stock, &topic, 4, "together", 40)?;
    read_all(&mut [&mut first, &mut second], &values("together", 40))?;
    first.close()?;
    second.close()
}

pub fn rolling_restart(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(6)?, stage.name("group"));
    let start = |stage: &Stage| Member::consumer(stage, stock, &group, &topic, &json!({}));
    let mut members = [start(stage)?, start(stage)?];
    settle(&mut members.iter_mut().collect::<Vec<_>>(), &topic, 6)?;
    let mut wanted = values("before", 60);
    produce(stage, stock, &topic, 6, "before", 60)?;
    let mut gone = Vec::new();
    for index in 0..members.len() {
        members[index].close()?;
        gone.push(std::mem::replace(&mut members[index], start(stage)?));
        let prefix = format!("round{index}");
        produce(stage, stock, &topic, 6, &prefix, 60)?;
        wanted.extend(values(&prefix, 60));
        settle(&mut members.iter_mut().collect::<Vec<_>>(), &topic, 6)?;
    }
    let mut all: Vec<&mut Member> = members.iter_mut().chain(gone.iter_mut()).collect();
    read_all(&mut all, &wanted)?;
    members.iter_mut().try_for_each(Member::close)
}

pub fn killed_member(stage: &mut Stage, stock: Stock) -> Result<()> {
    let (topic, group) = (stage.topic(4)?, stage.name("group"));
    let extra = json!({"session_timeout_ms": 6000});
    let mut first = Member::consumer(stage, stock, &group, &topic, &extra)?;
    let mut second = Member::consumer(stage, stock, &group, &topic, &extra)?;
    settle(&mut [&mut first, &mut second], &topic, 4)?;
    second.process.kill();
    settle(&mut [&mut first], &topic, 4)?;
    produce(stage, stock, &topic, 4, "a", 40)?;
    read_all(&mut [&mut first], &values("a", 40))?;
    first.close()
}

fn from(member: &Member, prefix: &str) -> Vec<String> {
    member
        .told
        .received
        .iter()
        .filter(|value| value.starts_with(prefix))
        .cloned()
        .collect()
}

fn assert_none(values: &[String], what: &str) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} {what}, among them {:?}",
        values.len(),
        &values[..values.len().min(5)]
    )
    .into())
}

fn assert_eq_len(member: &Member, wanted: usize) -> Result<()> {
    let owned = &member.told.assignment;
    if owned.len() == wanted {
        Ok(())
    } else {
        Err(format!("{owned:?} are not {wanted} partitions").into())
    }
}
