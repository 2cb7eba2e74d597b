//! Makes a conversation that differs a short one that still does.

use convoke_support::Result;

use crate::answers::Placement;
use crate::conversation::{End, Held, hold};
use crate::step::Step;
use crate::world::World;

/// Conversations that are tried.
const ATTEMPTS: usize = 150;

/// A difference with as little around it as was found.
#[derive(Debug)]
pub struct Shrunk {
    /// As it can be held again.
    pub steps: Vec<Step>,
    pub held: Held,
}

/// Holds the conversation again, then with parts of it left out. `None` if it does not differ again.
pub async fn shrink(world: &World, token: &str, placement: Placement, steps: &[Step]) -> Result<Option<Shrunk>> {
    let mut attempts = 0;
    let Some(mut best) = differing(world, token, placement, steps.to_vec(), &mut attempts).await? else {
        return Ok(None);
    };
    let mut size = best.steps.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        let mut is_shorter = false;
        while at < best.steps.len() && attempts < ATTEMPTS {
            let mut fewer = best.steps.clone();
            fewer.drain(at..(at + size).min(fewer.len()));
            match differing(world, token, placement, fewer, &mut attempts).await? {
                Some(shorter) => {
                    best = shorter;
                    is_shorter = true;
                }
                None => at += size,
            }
        }
        if size > 1 || !is_shorter {
            size /= 2;
        }
    }
    Ok(Some(best))
}

async fn differing(
    world: &World,
    token: &str,
    placement: Placement,
    mut steps: Vec<Step>,
    attempts: &mut usize,
) -> Result<Option<Shrunk>> {
    *attempts += 1;
    let held = hold(world, &format!("{token}-{attempts}"), placement, &steps).await?;
    // What follows the difference was not said.
    steps.truncate(held.turns.len());
    Ok(match held.end {
        End::Differs => Some(Shrunk { steps, held }),
        End::Same | End::Accepted => None,
    })
}
