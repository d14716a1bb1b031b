//! The JSON form of an event, written to be read fast.
//!
//! As jittrace writes a line, the head that all kinds share stands first: once its kind is known, what follows is read as
//! the body of that kind. A line that has them in another order is parsed twice, for the head and for the body. Either
//! way nothing is buffered, which is several times faster than a tagged enum with a flattened tail.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{
        DeserializeSeed, Error as _, MapAccess, Visitor,
        value::{CowStrDeserializer, MapAccessDeserializer},
    },
    ser::SerializeMap,
};
use thiserror::Error;

use super::*;

/// Why a line is no event.
#[derive(Debug, Error)]
pub enum EventError {
    /// The line is not a JSON object with the fields that every event has.
    #[error("not an event: {0}")]
    Head(serde_json::Error),
    /// The fields of its kind do not read.
    #[error("event {id} of kind {kind} does not read: {error}")]
    Body {
        /// The event.
        id: EventId,
        /// Its kind.
        kind: String,
        /// What does not read.
        error: serde_json::Error,
    },
}

#[derive(Deserialize)]
struct Head<'a> {
    id: EventId,
    t: u64,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    tid: u32,
    source: Source,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    same_as: Option<EventId>,
}

/// The kinds that have a body of their own, by their names in the trace.
pub const KINDS: [&str; 15] = [
    "process-start",
    "process-exit",
    "exec",
    "exec-failed",
    "library-request",
    "library-loaded",
    "library-failed",
    "library-unloaded",
    "call",
    "message",
    "file",
    "python-stack",
    "fact",
    "lost",
    "note",
];

impl Body {
    /// The kind's name in the trace.
    pub fn kind(&self) -> &str {
        match self {
            Body::ProcessStart(_) => "process-start",
            Body::ProcessExit(_) => "process-exit",
            Body::Exec(_) => "exec",
            Body::ExecFailed(_) => "exec-failed",
            Body::LibraryRequest(_) => "library-request",
            Body::LibraryLoaded(_) => "library-loaded",
            Body::LibraryFailed(_) => "library-failed",
            Body::LibraryUnloaded(_) => "library-unloaded",
            Body::Call(_) => "call",
            Body::Message(_) => "message",
            Body::File(_) => "file",
            Body::PythonStack(_) => "python-stack",
            Body::Fact(_) => "fact",
            Body::Lost(_) => "lost",
            Body::Note(_) => "note",
            Body::Other(other) => &other.kind,
        }
    }

    /// The body of a kind, from the fields of a line.
    fn of<'de, D: Deserializer<'de>>(kind: &str, line: D) -> Result<Body, D::Error> {
        fn of<'de, T: Deserialize<'de>, D: Deserializer<'de>>(line: D) -> Result<T, D::Error> {
            T::deserialize(line)
        }
        Ok(match kind {
            "process-start" => Body::ProcessStart(of(line)?),
            "process-exit" => Body::ProcessExit(of(line)?),
            "exec" => Body::Exec(of(line)?),
            "exec-failed" => Body::ExecFailed(of(line)?),
            "library-request" => Body::LibraryRequest(of(line)?),
            "library-loaded" => Body::LibraryLoaded(of(line)?),
            "library-failed" => Body::LibraryFailed(of(line)?),
            "library-unloaded" => Body::LibraryUnloaded(of(line)?),
            "call" => Body::Call(of(line)?),
            "message" => Body::Message(of(line)?),
            "file" => Body::File(of(line)?),
            "python-stack" => Body::PythonStack(of(line)?),
            "fact" => Body::Fact(of(line)?),
            "lost" => Body::Lost(of(line)?),
            "note" => Body::Note(of(line)?),
            other => Body::Other(Box::new(OtherKind {
                kind: other.to_owned(),
                fields: of(line)?,
            })),
        })
    }
}

impl Event {
    /// Reads one line of a trace.
    ///
    /// # Errors
    /// The line is no JSON object, lacks a field that every event has, or has a field of the wrong type.
    pub fn from_line(line: &str) -> Result<Event, EventError> {
        if let Ok(event) = serde_json::from_str::<InOrder>(line) {
            return Ok(event.0);
        }
        let head: Head<'_> = serde_json::from_str(line).map_err(EventError::Head)?;
        let mut fields = serde_json::Deserializer::from_str(line);
        let body = Body::of(&head.kind, &mut fields).map_err(|error| EventError::Body {
            id: head.id,
            kind: head.kind.to_string(),
            error,
        })?;
        Ok(Event {
            id: head.id,
            t: head.t,
            pid: head.pid,
            tid: head.tid,
            source: head.source,
            same_as: head.same_as,
            body,
        })
    }

    /// The line of a trace, without its newline.
    ///
    /// # Errors
    /// Only a map with keys that are no text cannot be written, and no kind has one.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

/// An event whose fields stand in the order in which jittrace writes them; others do not read as one.
struct InOrder(Event);

/// A name or a short text that may be borrowed from the line.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for InOrder {
    fn deserialize<D: Deserializer<'de>>(line: D) -> Result<InOrder, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = InOrder;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event, its head first")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder, A::Error> {
                fn next<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
                    map: &mut A,
                    name: &'static str,
                ) -> Result<T, A::Error> {
                    match map.next_key::<Text<'de>>()? {
                        Some(key) if key.0 == name => map.next_value(),
                        _ => Err(A::Error::missing_field(name)),
                    }
                }
                let id = next(&mut map, "id")?;
                let t = next(&mut map, "t")?;
                let pid = next(&mut map, "pid")?;
                let tid = next(&mut map, "tid")?;
                let source = next(&mut map, "source")?;
                let kind: Text<'de> = next(&mut map, "kind")?;
                // Of a kind that is not known every field is kept, the head's too.
                if !KINDS.contains(&&*kind.0) {
                    return Err(A::Error::custom("not a known kind"));
                }
                let mut same_as = None;
                let rest = Rest {
                    map: &mut map,
                    same_as: &mut same_as,
                };
                let body = Body::of(&kind.0, MapAccessDeserializer::new(rest))?;
                Ok(InOrder(Event {
                    id,
                    t,
                    pid,
                    tid,
                    source,
                    same_as,
                    body,
                }))
            }
        }
        line.deserialize_map(Fields)
    }
}

/// The fields after the head, but for the one of the head that not every event has.
struct Rest<'a, A> {
    map: &'a mut A,
    same_as: &'a mut Option<EventId>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<Text<'de>>()? {
            match &*key.0 {
                "same_as" => *self.same_as = self.map.next_value()?,
                // Told twice: what the other reading makes of it counts.
                "id" | "t" | "pid" | "tid" | "source" | "kind" => {
                    return Err(A::Error::custom("a field of the head after it"));
                }
                _ => return seed.deserialize(CowStrDeserializer::new(key.0)).map(Some),
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Writes the fields of `body` beside the head's.
struct Flat<'a>(&'a Event);

impl Serialize for Flat<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.body {
            Body::ProcessStart(b) => b.serialize(serializer),
            Body::ProcessExit(b) => b.serialize(serializer),
            Body::Exec(b) => b.serialize(serializer),
            Body::ExecFailed(b) => b.serialize(serializer),
            Body::LibraryRequest(b) => b.serialize(serializer),
            Body::LibraryLoaded(b) => b.serialize(serializer),
            Body::LibraryFailed(b) => b.serialize(serializer),
            Body::LibraryUnloaded(b) => b.serialize(serializer),
            Body::Call(b) => b.serialize(serializer),
            Body::Message(b) => b.serialize(serializer),
            Body::File(b) => b.serialize(serializer),
            Body::PythonStack(b) => b.serialize(serializer),
            Body::Fact(b) => b.serialize(serializer),
            Body::Lost(b) => b.serialize(serializer),
            Body::Note(b) => b.serialize(serializer),
            Body::Other(_) => serializer.serialize_map(Some(0))?.end(),
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    id: EventId,
    t: u64,
    pid: u32,
    tid: u32,
    source: Source,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as: Option<EventId>,
    #[serde(flatten)]
    body: Flat<'a>,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Body::Other(other) = &self.body {
            return other.fields.serialize(serializer);
        }
        Line {
            id: self.id,
            t: self.t,
            pid: self.pid,
            tid: self.tid,
            source: self.source,
            kind: self.body.kind(),
            same_as: self.same_as,
            body: Flat(self),
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(event: &Event) -> Event {
        Event::from_line(&event.to_line().unwrap()).unwrap()
    }

    #[test]
    fn an_event_reads_back_as_it_was_written() {
        let event = Event {
            id: 7,
            t: 12,
            pid: 100,
            tid: 101,
            source: Source::Preload,
            same_as: Some(3),
            body: Body::Call(Box::new(Call {
                function: "cudaRuntimeGetVersion".into(),
                value: Some("13000".into()),
                result: Some(0),
                count: 1,
                ..Call::default()
            })),
        };
        assert_eq!(there_and_back(&event), event);
        let line = event.to_line().unwrap();
        assert!(line.starts_with(
            r#"{"id":7,"t":12,"pid":100,"tid":101,"source":"preload","kind":"call","same_as":3,"function""#
        ));
    }

    #[test]
    fn the_order_of_the_fields_makes_no_difference() {
        let head = [
            r#""id":7"#,
            r#""t":12"#,
            r#""pid":100"#,
            r#""tid":101"#,
            r#""source":"preload""#,
            r#""kind":"file""#,
            r#""same_as":3"#,
        ];
        let body = [
            r#""op":"open""#,
            r#""path":"/x""#,
            r#""errno":2"#,
            r#""new":{}"#,
        ];
        let line = |fields: &[&str]| format!("{{{}}}", fields.join(","));
        let mut fields = [head.as_slice(), &body].concat();
        let first = Event::from_line(&line(&fields)).unwrap();
        assert_eq!((first.id, first.tid, first.same_as), (7, 101, Some(3)));
        assert!(serde_json::from_str::<InOrder>(&line(&fields)).is_ok());
        for _ in 0..fields.len() {
            fields.rotate_left(1);
            assert_eq!(Event::from_line(&line(&fields)).unwrap(), first);
        }
        fields.reverse();
        assert_eq!(Event::from_line(&line(&fields)).unwrap(), first);
    }

    #[test]
    fn a_kind_that_is_not_known_keeps_every_field() {
        let line = r#"{"id":7,"t":12,"pid":100,"tid":101,"source":"preload","kind":"new","x":[1]}"#;
        let event = Event::from_line(line).unwrap();
        assert_eq!(event.to_line().unwrap(), line);
    }

    #[test]
    fn the_fields_of_a_kind_never_hide_those_of_every_event() {
        let toolkit = Fact::Toolkit(ToolkitFact {
            root: "/opt/cuda".into(),
            kind: "system".into(),
            ..ToolkitFact::default()
        });
        let event = Event {
            id: 4,
            t: 0,
            pid: 0,
            tid: 0,
            source: Source::Collector,
            same_as: None,
            body: Body::Fact(Box::new(toolkit)),
        };
        assert_eq!(there_and_back(&event), event);
    }

    #[test]
    fn facts_are_told_apart_by_what_they_are_about() {
        let event = Event {
            id: 1,
            t: 0,
            pid: 0,
            tid: 0,
            source: Source::Collector,
            same_as: None,
            body: Body::Fact(Box::new(Fact::Gpu(GpuFact {
                index: 0,
                name: "NVIDIA H200".into(),
                compute_capability: Some("9.0".into()),
                from: "nvml".into(),
            }))),
        };
        assert!(
            event
                .to_line()
                .unwrap()
                .contains(r#""kind":"fact","about":"gpu""#)
        );
        assert_eq!(there_and_back(&event), event);
    }

    #[test]
    fn a_toolkit_has_a_kind_of_its_own() {
        let event = Event {
            id: 1,
            t: 0,
            pid: 0,
            tid: 0,
            source: Source::Collector,
            same_as: None,
            body: Body::Fact(Box::new(Fact::Toolkit(ToolkitFact {
                root: "/usr/local/cuda".into(),
                kind: "system".into(),
                ..ToolkitFact::default()
            }))),
        };
        assert_eq!(there_and_back(&event), event);
    }

    #[test]
    fn an_unknown_kind_is_kept_whole() {
        let line =
            r#"{"id":1,"t":2,"pid":3,"tid":3,"source":"quantum","kind":"entangled","with":[4]}"#;
        let event = Event::from_line(line).unwrap();
        assert_eq!(event.source, Source::Other);
        assert_eq!(event.to_line().unwrap(), line);
    }

    #[test]
    fn an_unknown_field_is_ignored() {
        let line = r#"{"id":1,"t":2,"pid":3,"tid":3,"source":"preload","kind":"process-exit","code":0,"mood":"good"}"#;
        assert!(matches!(
            Event::from_line(line).unwrap().body,
            Body::ProcessExit(ProcessExit { code: Some(0), .. })
        ));
    }
}
