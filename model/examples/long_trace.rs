//! Makes a long trace out of real ones: `long_trace OUT BYTES TRACE…` repeats their events, one run after another, until
//! OUT has at least BYTES. Numbers, times and pids go on rising, as those of a server that starts workers all day do; what
//! of a run still lives at its end is told to stop (SIGTERM), before the next begins.

use std::{
    collections::BTreeSet,
    error::Error,
    fs::File,
    io::{BufRead, BufReader, BufWriter, Write},
};

use serde_json::{Map, Value, json};

/// Pids come again after so many, as the kernel's do (`pid_max`).
const PIDS: u64 = 4_194_304;

/// Between the pids of one run and the next.
const STRIDE: u64 = 1009;

fn add(event: &mut Map<String, Value>, names: &[&str], what: impl Fn(u64) -> u64) {
    for name in names {
        if let Some(value) = event.get_mut(*name)
            && let Some(number) = value.as_u64()
        {
            *value = what(number).into();
        }
    }
}

/// Pids of what has begun and not ended.
fn living(run: &[Map<String, Value>]) -> BTreeSet<u64> {
    let mut living = BTreeSet::new();
    for event in run {
        let pid = event.get("pid").and_then(Value::as_u64).unwrap_or(0);
        match event.get("kind").and_then(Value::as_str) {
            Some("process-start") => living.insert(pid),
            Some("process-exit") => living.remove(&pid),
            _ => false,
        };
    }
    living
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: long_trace OUT BYTES TRACE…";
    let out = arguments.next().ok_or(usage)?;
    let wanted: usize = arguments.next().ok_or(usage)?.parse()?;
    let mut header = None;
    let mut runs: Vec<Vec<Map<String, Value>>> = Vec::new();
    for path in arguments {
        let mut lines = BufReader::new(File::open(path)?).lines();
        let first = lines.next().ok_or("an empty trace")??;
        header.get_or_insert(first);
        let events = lines
            .map(|line| Ok(serde_json::from_str(&line?)?))
            .collect::<Result<_, Box<dyn Error>>>()?;
        runs.push(events);
    }
    let mut writer = BufWriter::with_capacity(1 << 20, File::create(out)?);
    let header = header.ok_or(usage)?;
    writeln!(writer, "{header}")?;
    let (mut bytes, mut events) = (header.len() + 1, 0_u64);
    let (mut ids, mut time) = (0, 0);
    let mut line = Vec::new();
    for run in 0.. {
        if bytes >= wanted {
            break;
        }
        let Some(seen) = usize::try_from(run)
            .ok()
            .and_then(|at| runs.get(at % runs.len()))
        else {
            break;
        };
        let (first, begun) = (ids, time);
        let number =
            |event: &Map<String, Value>, name| event.get(name).and_then(Value::as_u64).unwrap_or(0);
        let last = |name| {
            seen.iter()
                .map(|event| number(event, name))
                .max()
                .unwrap_or(0)
        };
        let (last_id, last_t) = (last("id"), last("t"));
        let ends = living(seen)
            .into_iter()
            .zip(last_id + 1..)
            .map(|(pid, id)| {
                let end = json!({
                    "id": id, "t": last_t + 1_000_000, "pid": pid, "tid": pid,
                    "source": "collector", "kind": "process-exit", "signal": 15,
                });
                end.as_object().cloned().unwrap_or_default()
            });
        for event in seen.iter().cloned().chain(ends) {
            // What a file is, is told once in a trace.
            if run >= runs.len() as u64 && event.get("kind").is_some_and(|kind| kind == "fact") {
                continue;
            }
            let mut event = event;
            add(&mut event, &["id", "same_as", "request", "of"], |id| {
                first + id
            });
            add(&mut event, &["t"], |t| begun + t);
            // 0 is no process.
            add(&mut event, &["pid", "tid", "ppid", "child"], |pid| {
                if pid == 0 {
                    0
                } else {
                    (pid + run * STRIDE) % PIDS + 1
                }
            });
            ids = ids.max(number(&event, "id"));
            time = time.max(number(&event, "t"));
            line.clear();
            serde_json::to_writer(&mut line, &event)?;
            line.push(b'\n');
            writer.write_all(&line)?;
            bytes += line.len();
            events += 1;
        }
    }
    writer.flush()?;
    println!("{events} events, {bytes} bytes");
    Ok(())
}
