//! The chain behind a process and behind a build.

use jittrace_model::EventId;

use crate::{snapshot::ProcessRow, subject::Subject, summary, text, theme::Tone, view::builds};

use super::*;

pub(super) fn process(evidence: &Evidence<'_>, id: EventId, links: &mut Vec<Link>) {
    let Some((at, row)) = evidence
        .snapshot
        .process_index(id)
        .and_then(|at| Some((at, evidence.snapshot.processes.get(at)?)))
    else {
        return;
    };
    let toolkit = evidence.snapshot.toolkit_of_file(&row.program);
    let tone = toolkit.map_or(Tone::Plain, |t| Tone::Toolkit(evidence.snapshot.rank(t)));
    links.push(
        Link::new("program", row.program.clone())
            .tone(tone)
            .event(row.event)
            .copies(row.program.clone()),
    );
    if row.exe != row.program && !row.exe.is_empty() {
        links.push(
            Link::new("run by", row.exe.clone())
                .deep(1)
                .copies(row.exe.clone()),
        );
    }
    links.push(
        Link::new("command", row.argv.join(" ")).copies(crate::copy::command(
            &row.program,
            &row.argv,
            &row.cwd,
            row.env.as_ref(),
        )),
    );
    if !row.cwd.is_empty() {
        links.push(Link::new("in", row.cwd.clone()));
    }
    // A process runs as its parent does, unless somebody wanted otherwise.
    let parent = row.parent.and_then(|p| evidence.snapshot.processes.get(p));
    if let Some(uid) = row.uid
        && parent.is_none_or(|parent| parent.uid != Some(uid))
    {
        links.push(Link::new("as user", uid.to_string()));
    }
    let began = if row.found {
        "found running at"
    } else {
        "from"
    };
    let life = match row.end {
        Some(end) => format!(
            "{began} {}, for {}",
            evidence.moment(row.start),
            text::duration(end.saturating_sub(row.start))
        ),
        None if row.replaced_by.is_some() => format!(
            "{began} {}, then ran another program",
            evidence.moment(row.start)
        ),
        None if evidence.live && row.not_followed.is_none() => {
            format!("{began} {}, still running", evidence.moment(row.start))
        }
        None => format!("{began} {}, no end seen", evidence.moment(row.start)),
    };
    links.push(Link::new("life", life));
    if let Some(exit) = row.exit {
        let (word, tone) = crate::view::exit_word(exit);
        let mut link = Link::new("ended", word).tone(tone);
        if let Some(event) = row.exit_event {
            link = link.event(event);
        }
        links.push(link);
    }
    if let Some(reason) = &row.not_followed {
        links.push(
            Link::new("not followed", reason.clone())
                .tone(Tone::Warning)
                .event(row.event),
        );
    }
    if let Some(exec) = row.exec_event {
        let by = match row.python.as_slice() {
            [] => "an exec".to_owned(),
            python => summary::asker(python),
        };
        let rest = unsaid(Some(&by), &row.python);
        links.push(Link::new("asked for by", by).event(exec));
        frames(rest, exec, evidence.expanded, links);
    }
    let mut below = at;
    for (depth, parent) in evidence
        .snapshot
        .ancestry(at)
        .into_iter()
        .skip(1)
        .enumerate()
    {
        if let Some(row) = evidence.snapshot.processes.get(parent) {
            let label = descent(row, below);
            links.push(
                Link::new(label, format!("{} {}", row.pid, command_line(row)))
                    .deep(depth.min(4))
                    .to(Subject::Process(row.event)),
            );
        }
        below = parent;
    }
    if let Some(next) = row
        .replaced_by
        .and_then(|next| evidence.snapshot.processes.get(next))
    {
        links.push(Link::new("became", command_line(next)).to(Subject::Process(next.event)));
    }
    let children: Vec<&ProcessRow> = evidence
        .snapshot
        .processes
        .iter()
        .filter(|p| p.parent == Some(at))
        .collect();
    if !children.is_empty() {
        links.push(Link::heading(&format!("started ({})", children.len())));
        let shown = if evidence.expanded { ALL } else { PLACES };
        for child in children.iter().take(shown) {
            links.push(
                Link::new(&child.pid.to_string(), command_line(child))
                    .deep(1)
                    .to(Subject::Process(child.event)),
            );
        }
        more(evidence, children.len().saturating_sub(shown), links);
    }
    environment(evidence, row, links);
}

/// The captured environment: first what differs from the process before, for that is where a toolkit is put in the way.
fn environment(evidence: &Evidence<'_>, row: &ProcessRow, links: &mut Vec<Link>) {
    let before = row
        .parent
        .and_then(|at| evidence.snapshot.processes.get(at))
        .map(|parent| parent.env.as_ref())
        .filter(|env| !env.is_empty());
    let variable = |name: &str, text: String, value: &str| {
        Link::new(name, text)
            .deep(1)
            .event(row.event)
            .copies(format!("{name}={value}"))
    };
    let (mut changed, mut same) = (Vec::new(), Vec::new());
    for (name, value) in row.env.iter() {
        match before.map(|env| env.get(name)) {
            None => same.push(variable(name, value.clone(), value)),
            Some(Some(old)) if old == value => {
                same.push(variable(name, value.clone(), value).tone(Tone::Dim));
            }
            Some(Some(old)) => changed
                .push(variable(name, format!("{value}, was {old}"), value).tone(Tone::Warning)),
            Some(None) => changed
                .push(variable(name, format!("{value}, was not set"), value).tone(Tone::Warning)),
        }
    }
    if row.env.is_empty() {
        return;
    }
    for (name, old) in before.into_iter().flatten() {
        if !row.env.contains_key(name) {
            let text = format!("not set any more, was {old}");
            changed.push(variable(name, text, "").tone(Tone::Warning));
        }
    }
    for (heading, variables) in [
        ("environment that its parent had otherwise", changed),
        ("captured environment", same),
    ] {
        if !variables.is_empty() {
            links.push(Link::heading(heading));
            links.extend(variables);
        }
    }
}

pub(super) fn build(evidence: &Evidence<'_>, id: EventId, links: &mut Vec<Link>) {
    let Some(build) = evidence.snapshot.build(id) else {
        return;
    };
    let toolkit = evidence.snapshot.toolkit_of_file(&build.path);
    let tone = toolkit.map_or(Tone::Plain, |t| Tone::Toolkit(evidence.snapshot.rank(t)));
    let mut link = Link::new(
        &format!("{} {}", build.tool, build.version.as_deref().unwrap_or("")),
        build.path.clone(),
    )
    .tone(tone)
    .copies(build.path.clone());
    if let Some(id) = build.events.first() {
        link = link.event(*id);
    }
    links.push(link);
    if let Some(message) = &build.message {
        links.push(Link::new("said", message.clone()).tone(Tone::Error));
    }
    if let Some(why) = &build.why {
        links.push(Link::new("ran again", why.clone()));
    }
    match (build.exit, build.duration_ns) {
        (Some(exit), duration) => {
            let (word, tone) = crate::view::exit_word(exit);
            let after = duration
                .map(|d| format!(" after {}", text::duration(d)))
                .unwrap_or_default();
            links.push(Link::new("ended", format!("{word}{after}")).tone(tone));
        }
        (None, Some(duration)) => {
            let text = format!("after {}", text::duration(duration));
            links.push(Link::new("ended", text));
        }
        (None, None) if evidence.live => {
            links.push(Link::new("", "still running").tone(Tone::Accent));
        }
        (None, None) => links.push(Link::new("ended", "no end seen").tone(Tone::Accent)),
    }
    if let Some(output) = &build.output {
        links.push(Link::new("output", output.clone()).copies(output.clone()));
    }
    if !build.archs.is_empty() {
        links.push(Link::new("architectures", build.archs.join(" ")));
    }
    links.push(
        Link::new("command", build.argv.join(" ")).copies(crate::copy::command(
            &build.path,
            &build.argv,
            &build.cwd,
            [],
        )),
    );
    links.push(Link::new("in", build.cwd.clone()));
    if let Some(by) = &build.started_by {
        links.push(Link::new("for", by.clone()));
    }
    let mut parent = evidence.snapshot.build_above(build);
    let mut depth = 0;
    while let Some(above) = parent {
        depth += 1;
        links.push(
            Link::new(
                "run by",
                format!("{} {}", above.tool, above.output.as_deref().unwrap_or("")),
            )
            .deep(depth)
            .to(Subject::Build(builds::key(above))),
        );
        parent = evidence.snapshot.build_above(above);
    }
    if let Some(process) = evidence.snapshot.process_index(id) {
        if let Some(row) = evidence.snapshot.processes.get(process)
            && let Some(exec) = row.exec_event
            && !row.python.is_empty()
        {
            let by = summary::asker(&row.python);
            let rest = unsaid(Some(&by), &row.python);
            links.push(Link::new("asked for by", by).event(exec));
            frames(rest, exec, evidence.expanded, links);
        }
        ancestry(evidence, process, links);
    }
    for id in build.events.iter().skip(1) {
        links.push(
            Link::new("seen as", format!("#{id}"))
                .tone(Tone::Dim)
                .event(*id),
        );
    }
}
