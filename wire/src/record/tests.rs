use super::fields::Fields;
use super::*;
use proptest::prelude::*;
use std::string::String;
use std::vec::Vec;

fn header(sequence: u32) -> Header {
    Header {
        time: 123_456_789_012,
        pid: 42,
        tid: 43,
        sequence,
        flags: 0,
    }
}

/// A list as a record would hold it, built by hand from texts.
fn texts<'a>(bytes: &'a mut Vec<u8>, tag: Tag, values: &[String]) -> List<'a, Text<'a>> {
    for value in values {
        bytes.push(tag);
        bytes.push(0);
        bytes.extend_from_slice(&(value.len() as u16).to_le_bytes());
        bytes.extend_from_slice(value.as_bytes());
    }
    let _ = Fields { rest: bytes };
    List::over(tag, bytes)
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        ppid in any::<u64>(), exe in ".{0,60}", argv in prop::collection::vec(".{0,20}", 0..12), env in prop::collection::vec("[A-Z_]{1,9}=.{0,20}", 0..12), code in any::<i64>(),
    ) {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let start = Start {
            ppid,
            argc: argv.len() as u64,
            exe: exe.as_str().into(),
            argv: texts(&mut first, Start::argv, &argv),
            env: texts(&mut second, Start::env, &env),
            ..Start::default()
        };
        let mut bytes = Vec::new();
        for (sequence, record) in [Record::Start(start), Record::Exit(Exit { code: Some(code), ..Exit::default() })].iter().enumerate() {
            let mut buffer = [0; MAX_RECORD];
            bytes.extend_from_slice(record.encode(header(sequence as u32), &mut buffer));
        }
        let (head, record, length) = decode(&bytes).unwrap();
        prop_assert_eq!(head, header(0));
        prop_assert_eq!(record, Record::Start(start));
        let (head, record, rest) = decode(&bytes[length..]).unwrap();
        prop_assert_eq!(head.sequence, 1);
        prop_assert_eq!(record, Record::Exit(Exit { code: Some(code), ..Exit::default() }));
        prop_assert_eq!(length + rest, bytes.len());
    }

    #[test]
    fn any_bytes_are_read_without_panic_and_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut at = 0;
        while at < bytes.len() {
            match decode(&bytes[at..]) {
                Ok((_, _, length)) => at += length,
                Err(error) => match error.skip() { Some(skip) => { prop_assert!(skip > 0); at += skip; } None => break },
            }
        }
    }

    #[test]
    fn a_damaged_record_does_not_take_the_next_with_it(at in 0usize..60, byte in any::<u8>(), cut in 1usize..60) {
        let mut buffer = [0; MAX_RECORD];
        let whole = Record::Note(Note { text: "one two three".into(), ..Note::default() }).encode(header(1), &mut buffer).to_vec();
        let mut damaged = whole.clone();
        let at = at.min(damaged.len() - 1);
        let changed = damaged[at] != byte;
        damaged[at] = byte;
        if !changed { damaged.truncate(damaged.len().saturating_sub(cut).max(1)); }
        damaged.extend_from_slice(&whole);
        damaged.extend_from_slice(&whole);
        let (mut from, mut read) = (0, 0);
        while from < damaged.len() {
            match decode(&damaged[from..]) {
                Ok((_, Record::Note(note), length)) => { prop_assert_eq!(note.text.value, "one two three"); read += 1; from += length; }
                Ok(_) => prop_assert!(false),
                Err(error) => match error.skip() { Some(skip) => from += skip, None => break },
            }
        }
        prop_assert!((1..=2).contains(&read), "{}", read);
    }
}

#[test]
fn what_does_not_fit_is_cut_with_a_mark_and_not_lost() {
    let arguments: Vec<String> = (0..10_000)
        .map(|number| std::format!("argument-{number}"))
        .collect();
    let mut bytes = Vec::new();
    let start = Start {
        argc: 10_000,
        exe: "/bin/true".into(),
        argv: texts(&mut bytes, Start::argv, &arguments),
        ..Start::default()
    };
    let mut buffer = [0; MAX_RECORD];
    let encoded = Record::Start(start).encode(header(1), &mut buffer).to_vec();
    assert!(encoded.len() <= MAX_RECORD);
    let (head, record, _) = decode(&encoded).unwrap();
    assert!(head.is_cut());
    let Record::Start(read) = record else {
        panic!("{record:?}")
    };
    assert_eq!((read.argc, read.exe.value), (10_000, "/bin/true"));
    assert!(read.argv.iter().count() > 100);
}

#[test]
fn texts_are_cut_at_characters_and_bad_bytes_are_marked() {
    let mut buffer = [0; 100];
    let mut writer = Writer::new(&mut buffer, Note::KIND);
    writer.text(Note::text, "é".repeat(60).as_bytes());
    let encoded = writer.finish(header(1)).to_vec();
    let (_, Record::Note(note), _) = decode(&encoded).unwrap() else {
        panic!()
    };
    assert!(
        note.text.mark.has(Mark::TRUNCATED) && !note.text.mark.has(Mark::ALTERED),
        "{:?}",
        note.text
    );

    let mut buffer = [0; 100];
    let mut writer = Writer::new(&mut buffer, Note::KIND);
    writer.text(Note::text, b"a\xffb");
    let encoded = writer.finish(header(1)).to_vec();
    let (_, Record::Note(note), _) = decode(&encoded).unwrap() else {
        panic!()
    };
    assert_eq!((note.text.value, note.text.mark), ("a?b", Mark::ALTERED));
}

#[test]
fn a_newer_format_and_an_unknown_kind_are_skipped_whole() {
    let mut buffer = [0; 100];
    let mut encoded = Writer::new(&mut buffer, 250).finish(header(1)).to_vec();
    assert_eq!(
        decode(&encoded).unwrap_err(),
        DecodeError::UnknownKind {
            kind: 250,
            skip: HEADER_LENGTH
        }
    );
    encoded[12] = FORMAT_VERSION + 1;
    let sum = checksum(&encoded[12..]);
    encoded[8..12].copy_from_slice(&sum.to_le_bytes());
    assert!(matches!(
        decode(&encoded).unwrap_err(),
        DecodeError::NewerFormat {
            skip: HEADER_LENGTH,
            ..
        }
    ));
}

#[test]
fn a_torn_tail_waits_for_more() {
    let mut buffer = [0; 200];
    let encoded = Record::Note(Note {
        text: "text".into(),
        ..Note::default()
    })
    .encode(header(1), &mut buffer)
    .to_vec();
    for length in 0..encoded.len() {
        assert_eq!(
            decode(&encoded[..length]).unwrap_err(),
            DecodeError::Incomplete,
            "{length}"
        );
    }
}
