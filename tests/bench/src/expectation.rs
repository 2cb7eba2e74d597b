//! What a right answer looks like, so that each of a million answers is checked without decoding it.
//!
//! The first answer is decoded. Later ones have to equal it, but for bytes that were seen to differ between answers that
//! decoded well (base offsets count up): an error code never differs between good answers, so an error never passes.

use convoke_support::Result;

use crate::link::HEAD_MAX;

/// Decodes a whole answer (without its length) and fails if it holds an error.
pub type Verify = fn(&[u8]) -> Result<()>;

/// Of an answer that is not kept whole (a Fetch) only these bytes are compared: error codes and high watermark, no records.
const LONG_HEAD: usize = 64;

/// The bytes of the correlation id, which is compared with the request's own.
const CORRELATION_SIZE: usize = 4;

#[derive(Debug)]
pub struct Expectation {
    len: usize,
    head: Vec<u8>,
    /// 0xff where good answers have to agree.
    fixed: Vec<u8>,
    verify: Verify,
}

impl Expectation {
    /// # Errors
    /// When `answer`, the whole of a first one, is not good.
    pub fn new(answer: &[u8], verify: Verify) -> Result<Self> {
        verify(answer)?;
        let compared = if answer.len() > HEAD_MAX {
            LONG_HEAD
        } else {
            answer.len()
        };
        let head = answer[..compared].to_vec();
        let mut fixed = vec![0xff; head.len()];
        fixed[..CORRELATION_SIZE].fill(0);
        Ok(Self {
            len: answer.len(),
            head,
            fixed,
            verify,
        })
    }

    /// Checks an answer of `len` bytes that starts with `head`.
    ///
    /// # Errors
    /// When it answers another request or is not good.
    pub fn check(&mut self, correlation_id: i32, len: usize, head: &[u8]) -> Result<()> {
        if head.get(..CORRELATION_SIZE) != Some(correlation_id.to_be_bytes().as_slice()) {
            return Err(format!("an answer to another request than {correlation_id}: {head:02x?}").into());
        }
        if len == self.len && self.differences(head).all(|difference| difference == 0) {
            return Ok(());
        }
        if len != head.len() {
            let (seen, known) = (&head[..head.len().min(LONG_HEAD)], &self.head);
            return Err(format!(
                "an answer of {len} bytes, {seen:02x?}, where {} bytes, {known:02x?}, were expected",
                self.len
            )
            .into());
        }
        (self.verify)(head)?;
        if len == self.len {
            let differences: Vec<u8> = self.differences(head).collect();
            for (fixed, difference) in self.fixed.iter_mut().zip(differences) {
                if difference != 0 {
                    *fixed = 0;
                }
            }
        }
        Ok(())
    }

    fn differences<'a>(&'a self, head: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
        let known = self.head.iter().zip(&self.fixed);
        known.zip(head).map(|((known, fixed), seen)| (known ^ seen) & fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A good answer: correlation id, error code 0, a counter.
    fn verify(answer: &[u8]) -> Result<()> {
        if answer.get(4..6) == Some(&[0, 0]) {
            Ok(())
        } else {
            Err("refused".into())
        }
    }

    #[test]
    fn an_error_code_never_passes_however_much_else_has_varied() {
        let mut expectation = Expectation::new(&[0, 0, 0, 0, 0, 0, 1, 1], verify).expect("a good answer");
        for counter in 0..=u8::MAX {
            let answer = [0, 0, 0, 9, 0, 0, counter, !counter];
            expectation.check(9, answer.len(), &answer).expect("a good answer");
        }
        expectation
            .check(9, 8, &[0, 0, 0, 9, 0, 25, 1, 1])
            .expect_err("an error code");
        expectation
            .check(9, 7, &[0, 0, 0, 9, 0, 25, 1])
            .expect_err("an error code");
    }

    #[test]
    fn the_answer_to_another_request_is_refused() {
        let mut expectation = Expectation::new(&[0, 0, 0, 0, 0, 0], verify).expect("a good answer");
        expectation.check(2, 6, &[0, 0, 0, 1, 0, 0]).expect_err("another id");
        expectation.check(2, 3, &[0, 0, 0]).expect_err("no id");
    }

    #[test]
    fn long_answers_have_to_start_alike_and_be_of_one_length() {
        let long = vec![0; HEAD_MAX * 2];
        let mut expectation = Expectation::new(&long, verify).expect("a good answer");
        expectation
            .check(0, long.len(), &long[..HEAD_MAX])
            .expect("the same answer");
        expectation
            .check(0, long.len() - 1, &long[..HEAD_MAX])
            .expect_err("a shorter one");
        let mut other = long.clone();
        other[LONG_HEAD - 1] = 1;
        expectation
            .check(0, long.len(), &other[..HEAD_MAX])
            .expect_err("another head");
        let mut other = long.clone();
        other[LONG_HEAD] = 1;
        expectation
            .check(0, long.len(), &other[..HEAD_MAX])
            .expect("other records");
    }
}
