//! Words and figures that all renderers share, so that text, Markdown, HTML and diff say the same thing the same way.

use std::fmt::Write as _;

use super::{
    Build, Candidate, Component, Evidence, Exit, Finding, Outcome, ProcessEntry, Report, Resolved,
    Severity,
};
use crate::event::EventId;

/// What stands where nothing is known.
pub const UNKNOWN: &str = "–";

/// Parts in the order in which they are shown; others follow in the report's order.
const PARTS: &[&str] = &[
    "nvcc",
    "ptxas",
    "cudart",
    "nvrtc",
    "nvjitlink",
    "libcuda",
    "cudnn",
    "cublas",
    "nccl",
    "headers",
    "host_compiler",
];

/// Pids of joined traces after the first are this much larger each, so that they stay apart.
pub const PID_STRIDE: u32 = 10_000_000;

/// Which of the joined traces a pid belongs to, from 0.
pub fn trace_of(pid: u32) -> u32 {
    pid / PID_STRIDE
}

/// A pid as it is shown: `4711`, or `4711 in trace 2` for one of a joined trace.
pub fn pid(pid: u32) -> String {
    match pid / PID_STRIDE {
        0 => pid.to_string(),
        trace => format!("{} in trace {}", pid % PID_STRIDE, trace + 1),
    }
}

/// `850 ms`, `4.2 s`, `3 min 12 s`.
pub fn duration(ns: u64) -> String {
    let milliseconds = ns / 1_000_000;
    match milliseconds {
        0 => format!("{} µs", ns / 1000),
        1..=999 => format!("{milliseconds} ms"),
        1_000..=59_949 => format!("{:.1} s", milliseconds as f64 / 1e3),
        _ => {
            let seconds = (milliseconds + 500) / 1000;
            match seconds / 60 {
                minutes @ 0..=59 => format!("{minutes} min {} s", seconds % 60),
                minutes => format!("{} h {} min", minutes / 60, minutes % 60),
            }
        }
    }
}

/// `exited 1`, `died of SIGKILL`, `still running`.
pub fn exit(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit {
            code: Some(code), ..
        }) => format!("exited {code}"),
        Some(Exit {
            signal: Some(signal),
            ..
        }) => format!("died of {}", signal_name(signal)),
        Some(_) => "ended".to_owned(),
        None => "still running".to_owned(),
    }
}

/// `SIGKILL`, or `signal 34` for one without a name here.
pub fn signal_name(signal: i32) -> String {
    const NAMES: &[(i32, &str)] = &[
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (14, "SIGALRM"),
        (15, "SIGTERM"),
    ];
    NAMES
        .iter()
        .find(|(number, _)| *number == signal)
        .map_or_else(
            || format!("signal {signal}"),
            |(_, name)| (*name).to_owned(),
        )
}

/// `1 error`, `2 errors`, `no error`.
pub fn counted(count: usize, one: &str) -> String {
    match count {
        0 => format!("no {one}"),
        1 => format!("1 {one}"),
        _ => {
            let plural = match one.strip_suffix('y') {
                Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
                _ if one.ends_with("ss") || one.ends_with("ch") || one.ends_with('s') => {
                    format!("{one}es")
                }
                _ => format!("{one}s"),
            };
            format!("{count} {plural}")
        }
    }
}

/// Arguments as a shell would take them.
pub fn command(argv: &[String]) -> String {
    let mut out = String::new();
    for argument in argv {
        if !out.is_empty() {
            out.push(' ');
        }
        let plain = !argument.is_empty()
            && argument
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_./=:,+@%^~<>".contains(c));
        if plain {
            out.push_str(argument);
        } else {
            let _ = write!(out, "'{}'", argument.replace('\'', r"'\''"));
        }
    }
    out
}

/// One line without control characters: what a traced program wrote must not steer the terminal that shows it.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '\n' | '\r' | '\t' => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            // Bidirectional overrides can make a text read as another one.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The beginning of a text, at most `width` characters, with an ellipsis when something is left out.
pub fn clipped(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    out
}

/// A path of at most `width` characters: its end tells more than its beginning.
pub fn short_path(path: &str, width: usize) -> String {
    let length = path.chars().count();
    if length <= width {
        return path.to_owned();
    }
    let tail: String = path
        .chars()
        .skip(length - width.saturating_sub(1))
        .collect();
    // Cut at a slash when one is near.
    match tail.find('/') {
        Some(at) if at < width / 2 => format!("…{}", tail.get(at..).unwrap_or_default()),
        _ => format!("…{tail}"),
    }
}

/// Where a version was read from, in words; a way that this table does not know keeps its own.
pub fn version_from(word: &str) -> &str {
    match word {
        "tool-string" | "build-string" | "nccl-string" => "a text in the file",
        "cuda-h" => "cuda.h",
        "cudart-h" => "cuda_runtime_api.h",
        "cudart-immediate" | "code-immediate" => "the file's code",
        "file-name" => "the file's name",
        "directory-name" => "the directory's name",
        "wheel-metadata" => "the wheel that owns the file",
        "conda-meta" => "the conda package that owns the file",
        "debian-package" => "the Debian package that owns the file",
        "nvjitlink-symbols" | "builtins-symbols" => "the symbols that the file exports",
        "version-json" => "the toolkit's version.json",
        "version-txt" => "the toolkit's version.txt",
        "driver-branch" => "the driver's branch",
        "version-output" => "what it printed for the program",
        "probe" => "what it printed when asked",
        "call" => "the answer to a call",
        other => other,
    }
}

/// `major.minor` of a version: what toolkits are told apart by.
pub fn release(version: &str) -> &str {
    let mut dots = version.match_indices('.').map(|(at, _)| at);
    match dots.nth(1) {
        Some(at) => version.get(..at).unwrap_or(version),
        None => version,
    }
}

/// Name and version: `flashinfer 0.6.8`.
pub fn component(component: &Component) -> String {
    match &component.version {
        Some(version) => format!("{} {version}", component.name),
        None => component.name.clone(),
    }
}

/// The parts that were resolved, in the order in which they are shown.
pub fn parts(report: &Report) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for component in &report.components {
        for (part, entries) in &component.resolved {
            if !entries.is_empty() && !parts.contains(&part.as_str()) {
                parts.push(part);
            }
        }
    }
    parts.sort_by_key(|part| {
        PARTS
            .iter()
            .position(|known| known == part)
            .unwrap_or(PARTS.len())
    });
    parts
}

/// `13 places tried`, or nothing when there was no search.
pub fn places_tried(candidates: &[Candidate]) -> Option<String> {
    let tried = candidates
        .iter()
        .filter(|candidate| candidate.outcome != Outcome::NotTried)
        .count();
    (tried > 1).then(|| format!("{tried} places tried"))
}

/// What became of a candidate.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Chosen => "chosen",
        Outcome::Missing => "missing",
        Outcome::DirectoryMissing => "no such directory",
        Outcome::NotElf => "not an ELF file",
        Outcome::WrongClass => "other machine",
        Outcome::Unreadable => "unreadable",
        Outcome::Broken => "broken",
        Outcome::NotTried => "not reached",
    }
}

/// `path: PATH entry 1: /opt/cuda-12.4/bin, CUDA_HOME unset`.
pub fn rule(resolved: &Resolved) -> String {
    if resolved.rule_detail.is_empty() {
        resolved.rule.word().to_owned()
    } else {
        format!("{}: {}", resolved.rule.word(), resolved.rule_detail)
    }
}

/// What a severity is called.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// Whether a finding stands for itself: it follows from no other finding of this report.
pub fn is_cause(report: &Report, finding: &Finding) -> bool {
    finding
        .consequence_of
        .as_ref()
        .is_none_or(|cause| report.findings.iter().all(|other| &other.id != cause))
}

/// How many causes there are of a severity. What follows from one of them is put right with it, and not counted.
pub fn count_of(report: &Report, severity: Severity) -> usize {
    report
        .findings
        .iter()
        .filter(|finding| finding.severity == severity && is_cause(report, finding))
        .count()
}

/// How many findings follow from others.
pub fn consequences(report: &Report) -> usize {
    report
        .findings
        .iter()
        .filter(|finding| !is_cause(report, finding))
        .count()
}

/// The finding that the verdict names: the first that is a fault and follows from no other.
pub fn primary(report: &Report) -> Option<&Finding> {
    let fault = |finding: &&Finding| finding.severity != Severity::Note;
    let first = |finding: &&Finding| finding.consequence_of.is_none();
    report
        .findings
        .iter()
        .filter(fault)
        .find(first)
        .or_else(|| report.findings.iter().find(fault))
}

/// The whole report in one sentence.
pub fn verdict(report: &Report) -> String {
    if let Some(finding) = primary(report) {
        return one_line(&finding.title);
    }
    let failed = report.exit.is_some_and(|exit| !exit.is_success());
    let mut text = if failed {
        format!(
            "no toolkit fault was seen, though the command {}",
            exit(report.exit)
        )
    } else {
        "no fault seen".to_owned()
    };
    let releases = releases_in_use(report);
    match releases.len() {
        0 => {}
        1 => {
            let _ = write!(text, ": CUDA {} throughout", releases.join(""));
        }
        _ => {
            let _ = write!(text, ": CUDA {} in use side by side", releases.join(", "));
        }
    }
    text
}

/// The CUDA releases that components resolved a compiler, assembler or run time of.
pub fn releases_in_use(report: &Report) -> Vec<&str> {
    let mut releases: Vec<&str> = Vec::new();
    for component in &report.components {
        for part in ["nvcc", "ptxas", "cudart", "nvrtc"] {
            for resolved in component.resolved.get(part).into_iter().flatten() {
                let release = resolved.version.as_deref().map(release);
                if let Some(release) = release.filter(|release| !releases.contains(release)) {
                    releases.push(release);
                }
            }
        }
    }
    releases.sort_unstable();
    releases
}

/// The resolved files that a finding speaks of, with their part: those that its evidence saw, else those of the part
/// in its id.
pub fn subjects<'a>(report: &'a Report, finding: &Finding) -> Vec<(&'a str, &'a Resolved)> {
    let Some(component) = report
        .components
        .iter()
        .find(|component| Some(&component.name) == finding.component.as_ref())
    else {
        return Vec::new();
    };
    let all = || {
        component
            .resolved
            .iter()
            .flat_map(|(part, entries)| entries.iter().map(move |entry| (part.as_str(), entry)))
    };
    let seen: Vec<_> = all()
        .filter(|(_, entry)| {
            finding
                .evidence
                .iter()
                .any(|evidence| entry.events.contains(&evidence.event))
        })
        .collect();
    let named = |part: &str| finding.id.split('-').any(|word| word == part);
    let by_name: Vec<_> = all().filter(|(part, _)| named(part)).collect();
    match (seen.iter().any(|(part, _)| named(part)), seen.is_empty()) {
        (true, _) => seen.into_iter().filter(|(part, _)| named(part)).collect(),
        (false, _) if !by_name.is_empty() => by_name,
        _ => seen,
    }
}

/// Driver and GPUs in one phrase; nothing when neither is known.
pub fn machine(report: &Report) -> Option<String> {
    let mut parts = Vec::new();
    for gpu in &report.gpus {
        let capability = gpu.compute_capability.as_deref().unwrap_or("?");
        let name = if gpu.name.is_empty() {
            "GPU"
        } else {
            &gpu.name
        };
        parts.push(format!("{name} (sm {capability})"));
    }
    parts.dedup();
    match (&report.driver.version, &report.driver.cuda) {
        (Some(version), Some(cuda)) => parts.push(format!("driver {version} (CUDA {cuda})")),
        (Some(version), None) => parts.push(format!("driver {version}")),
        (None, Some(cuda)) => parts.push(format!("driver CUDA {cuda}")),
        (None, None) => {}
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Builds in one phrase: `3 nvcc, 6 ptxas in 42.0 s, 1 failed`.
pub fn builds(report: &Report) -> Option<String> {
    let builds = &report.builds;
    if builds.is_empty() {
        return None;
    }
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for build in builds {
        match counts.iter_mut().find(|(tool, _)| *tool == build.tool) {
            Some((_, count)) => *count += 1,
            None => counts.push((&build.tool, 1)),
        }
    }
    counts.sort_by_key(|(tool, _)| {
        ["ninja", "nvcc", "cicc", "ptxas"]
            .iter()
            .position(|known| known == tool)
            .unwrap_or(9)
    });
    let tools: Vec<String> = counts
        .iter()
        .take(5)
        .map(|(tool, count)| format!("{count} {tool}"))
        .collect();
    let failed = builds
        .iter()
        .filter(|build| build.exit.is_some_and(|exit| !exit.is_success()))
        .count();
    let mut text = tools.join(", ");
    if let Some(span) = span(builds) {
        let _ = write!(text, " within {}", duration(span));
    }
    if failed > 0 {
        let _ = write!(text, ", {failed} failed");
    }
    let is_of_a_build = |(name, _): (&String, &u64)| builds.iter().any(|b| b.tool == *name);
    if let Some(condensed) = &report.condensed
        && condensed.processes.iter().any(is_of_a_build)
    {
        text.push_str(", and more like them");
    }
    Some(text)
}

/// Nanoseconds from the first start to the last end.
fn span(builds: &[Build]) -> Option<u64> {
    let start = builds.iter().map(|build| build.start_ns).min()?;
    let end = builds
        .iter()
        .map(|build| build.start_ns + build.duration_ns.unwrap_or(0))
        .max()?;
    end.checked_sub(start).filter(|span| *span > 0)
}

/// How a process ended: as [`exit`] says, unless nobody could see it.
pub fn end_of(process: &ProcessEntry) -> String {
    match process.exit {
        None if not_followed(process).is_some() => "its end was not seen".to_owned(),
        exit => self::exit(exit),
    }
}

/// What was seen, each different text once with all the events that say it.
pub fn seen(evidence: &[Evidence]) -> Vec<(&str, Vec<EventId>)> {
    let mut all: Vec<(&str, Vec<EventId>)> = Vec::new();
    for one in evidence {
        match all.iter_mut().find(|(text, _)| *text == one.text) {
            Some((_, events)) if events.contains(&one.event) => {}
            Some((_, events)) => events.push(one.event),
            None => all.push((&one.text, vec![one.event])),
        }
    }
    all
}

/// `event 7`, `events 7, 9`, `events 7, 9, 12 and 4 more`.
pub fn events(events: &[EventId]) -> String {
    const MOST: usize = 3;
    let numbers: Vec<String> = events.iter().take(MOST).map(u64::to_string).collect();
    let word = if events.len() == 1 { "event" } else { "events" };
    let more = match events.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{word} {}{more}", numbers.join(", "))
}

/// Why a process could not be looked into; `None` when it was.
pub fn not_followed(process: &ProcessEntry) -> Option<&str> {
    match &process.followed {
        super::Followed::Yes(true) => None,
        super::Followed::Yes(false) => Some("not followed"),
        super::Followed::No { reason } => Some(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_thing_seen_twice_is_told_once() {
        let evidence: Vec<Evidence> =
            [(7, "a"), (8, "b"), (9, "a"), (9, "a"), (11, "a"), (12, "a")]
                .map(|(event, text)| Evidence {
                    event,
                    text: text.into(),
                })
                .into();
        let told: Vec<String> = seen(&evidence)
            .iter()
            .map(|(text, ids)| format!("{text} ({})", events(ids)))
            .collect();
        assert_eq!(told, ["a (events 7, 9, 11 and 1 more)", "b (event 8)"]);
    }

    #[test]
    fn durations_read_as_people_say_them() {
        for (ns, text) in [
            (1_500, "1 µs"),
            (850_000_000, "850 ms"),
            (4_240_000_000, "4.2 s"),
            (59_990_000_000, "1 min 0 s"),
            (192_000_000_000, "3 min 12 s"),
            (7_260_000_000_000, "2 h 1 min"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn counts_agree_with_their_noun() {
        for (count, noun, text) in [
            (0, "error", "no error"),
            (1, "error", "1 error"),
            (2, "entry", "2 entries"),
            (2, "process", "2 processes"),
            (3, "day", "3 days"),
            (2, "miss", "2 misses"),
        ] {
            assert_eq!(counted(count, noun), text);
        }
    }

    #[test]
    fn paths_keep_their_end() {
        assert_eq!(short_path("/usr/bin/nvcc", 20), "/usr/bin/nvcc");
        let long = "/very/long/prefix/site-packages/nvidia/cu13/lib";
        assert_eq!(short_path(long, 32), "…/site-packages/nvidia/cu13/lib");
        assert_eq!(short_path(long, 28), "…/nvidia/cu13/lib");
        assert_eq!(short_path(long, 18), "…/nvidia/cu13/lib");
    }

    #[test]
    fn a_program_cannot_steer_the_terminal() {
        assert_eq!(
            one_line("a\x1b[31m\nb\u{202e}c"),
            "a\u{fffd}[31m b\u{fffd}c"
        );
    }

    #[test]
    fn commands_can_be_pasted() {
        let argv: Vec<String> = ["sh", "-c", "echo 'x' y", ""].map(str::to_owned).into();
        assert_eq!(command(&argv), r"sh -c 'echo '\''x'\'' y' ''");
    }
}
