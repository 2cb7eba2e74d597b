//! A client that says exactly what it is told to.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use bytes::{BufMut, Bytes, BytesMut};
use convoke_support::Result;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::{
    GroupId, MetadataRequest, OffsetCommitRequest, OffsetFetchRequest, RequestHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

use crate::PATIENCE;

/// One connection.
pub struct Raw {
    pub stream: TcpStream,
    /// Of the last request.
    correlation_id: i32,
    /// Requests that were sent and are not answered.
    unanswered: i32,
}

impl Raw {
    pub fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            correlation_id: 0,
            unanswered: 0,
        })
    }

    /// Sends a request; its answer is still to be read.
    pub fn send<R: Request>(&mut self, version: i16, request: &R) -> Result<()> {
        self.correlation_id += 1;
        self.unanswered += 1;
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation_id)
            .with_client_id(Some(StrBytes::from_static_str("faults")));
        let mut body = BytesMut::new();
        header.encode(&mut body, R::header_version(version))?;
        request.encode(&mut body, version)?;
        Ok(self.stream.write_all(&frame(&body))?)
    }

    /// The answer to the first request that has none yet.
    pub fn receive<R: Request>(&mut self, version: i16) -> Result<R::Response> {
        let mut prefix = [0; 4];
        self.stream.read_exact(&mut prefix)?;
        let mut body = vec![0; usize::try_from(i32::from_be_bytes(prefix))?];
        self.stream.read_exact(&mut body)?;
        let mut body = Bytes::from(body);
        let header = kafka_protocol::messages::ResponseHeader::decode(&mut body, R::Response::header_version(version))?;
        self.unanswered -= 1;
        let expected = self.correlation_id - self.unanswered;
        if header.correlation_id != expected {
            return Err(format!("the answer to {} instead of {expected}", header.correlation_id).into());
        }
        Ok(R::Response::decode(&mut body, version)?)
    }

    pub fn ask<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        self.send(version, request)?;
        self.receive::<R>(version)
    }

    /// Commits an offset of topic `t`, partition 0, without being a member; the error code.
    pub fn commit(&mut self, group: &str, offset: i64) -> Result<i16> {
        self.send_commit(group, offset)?;
        self.receive_commit()
    }

    /// Sends such a commit; its answer is still to be read.
    pub fn send_commit(&mut self, group: &str, offset: i64) -> Result<()> {
        let partition = OffsetCommitRequestPartition::default().with_committed_offset(offset);
        let topic = OffsetCommitRequestTopic::default()
            .with_name(topic())
            .with_partitions(vec![partition]);
        let request = OffsetCommitRequest::default()
            .with_group_id(GroupId(StrBytes::from_string(group.to_owned())))
            .with_generation_id_or_member_epoch(-1)
            .with_topics(vec![topic]);
        self.send(5, &request)
    }

    /// The error code of the answer to a commit.
    pub fn receive_commit(&mut self) -> Result<i16> {
        let answer = self.receive::<OffsetCommitRequest>(5)?;
        Ok(answer.topics[0].partitions[0].error_code)
    }

    /// The committed offset of topic `t`, partition 0, or the error code.
    pub fn committed(&mut self, group: &str) -> Result<Result<i64, i16>> {
        let topic = OffsetFetchRequestTopic::default()
            .with_name(topic())
            .with_partition_indexes(vec![0]);
        let request = OffsetFetchRequest::default()
            .with_group_id(GroupId(StrBytes::from_string(group.to_owned())))
            .with_topics(Some(vec![topic]));
        let answer = self.ask(5, &request)?;
        if answer.error_code != 0 {
            return Ok(Err(answer.error_code));
        }
        Ok(Ok(answer.topics[0].partitions[0].committed_offset))
    }

    /// How many brokers the upstream lists: a request that is forwarded.
    pub fn brokers(&mut self) -> Result<usize> {
        let request = MetadataRequest::default().with_topics(Some(Vec::new()));
        Ok(self.ask(4, &request)?.brokers.len())
    }

    /// Reads to the end; whether it comes in good order or as a reset does not matter.
    pub fn rest(&mut self) -> Result<Vec<u8>> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error.into()),
            _ => Ok(rest),
        }
    }
}

fn topic() -> TopicName {
    TopicName(StrBytes::from_static_str("t"))
}

/// Bytes with their length in front.
pub fn frame(body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.put_u32(u32::try_from(body.len()).expect("test frames are small"));
    frame.extend_from_slice(body);
    frame
}

/// A frame with a head of this API and version, and any body.
pub fn request(api_key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    head.put_i16(api_key);
    head.put_i16(version);
    head.put_i32(1);
    head.put_i16(-1);
    frame(&[&head, body].concat())
}
