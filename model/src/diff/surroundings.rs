//! What surrounds the components: command, driver, GPUs, machine, toolkits that are present, end and duration.

use super::{Change, Facet, Kind, Weight, other_host};
use crate::{
    lasting::lasting,
    report::{Report, phrase},
};

pub(super) fn compare(good: &Report, bad: &Report, changes: &mut Vec<Change>) {
    command(good, bad, changes);
    driver(good, bad, changes);
    host(good, bad, changes);
    toolkits(good, bad, changes);
    end(good, bad, changes);
}

fn command(good: &Report, bad: &Report, changes: &mut Vec<Change>) {
    let lasting_of = |report: &Report| -> Vec<String> {
        report
            .command
            .iter()
            .map(|argument| lasting(argument).into_owned())
            .collect()
    };
    let (before, after) = (lasting_of(good), lasting_of(bad));
    if before == after || before.is_empty() || after.is_empty() {
        return;
    }
    let added: Vec<&String> = after
        .iter()
        .filter(|argument| !before.contains(argument))
        .collect();
    let removed: Vec<&String> = before
        .iter()
        .filter(|argument| !after.contains(argument))
        .collect();
    let list = |arguments: &[&String]| {
        let shown: Vec<String> = arguments
            .iter()
            .take(4)
            .map(|argument| (*argument).clone())
            .collect();
        phrase::clipped(&phrase::command(&shown), 120)
    };
    let title = match (added.is_empty(), removed.is_empty()) {
        (false, false) => format!(
            "the command has {} instead of {}",
            list(&added),
            list(&removed)
        ),
        (false, true) => format!("the command has {} as well", list(&added)),
        (true, false) => format!("the command lacks {}", list(&removed)),
        (true, true) => "the command has the same arguments in another order".to_owned(),
    };
    changes.push(Change::new(Kind::Command, Weight::Cause, title).sides(
        Facet::new(phrase::command(&good.command), &[]),
        Facet::new(phrase::command(&bad.command), &[]),
    ));
}

fn driver(good: &Report, bad: &Report, changes: &mut Vec<Change>) {
    for (what, before, after) in [
        ("the driver", &good.driver.version, &bad.driver.version),
        ("the driver's CUDA", &good.driver.cuda, &bad.driver.cuda),
    ] {
        if let (Some(before), Some(after)) = (before, after)
            && before != after
        {
            changes.push(
                Change::new(
                    Kind::Driver,
                    Weight::Cause,
                    format!("{what} is {after} instead of {before}"),
                )
                .of(None, Some("driver"))
                .sides(Facet::new(before, &[]), Facet::new(after, &[])),
            );
        }
    }
    let gpus = |report: &Report| -> Vec<String> {
        let mut all: Vec<String> = report
            .gpus
            .iter()
            .map(|gpu| {
                format!(
                    "{} sm {}",
                    gpu.name,
                    gpu.compute_capability.as_deref().unwrap_or("?")
                )
            })
            .collect();
        all.dedup();
        all
    };
    let (before, after) = (gpus(good), gpus(bad));
    if before != after && !before.is_empty() && !after.is_empty() {
        changes.push(
            Change::new(
                Kind::Driver,
                Weight::Cause,
                format!(
                    "the GPU is {} instead of {}",
                    after.join(", ").trim(),
                    before.join(", ").trim()
                ),
            )
            .of(None, Some("gpu"))
            .sides(
                Facet::new(before.join(", "), &[]),
                Facet::new(after.join(", "), &[]),
            ),
        );
    }
}

fn host(good: &Report, bad: &Report, changes: &mut Vec<Change>) {
    for (what, before, after) in [
        ("host", &good.host.name, &bad.host.name),
        ("kernel", &good.host.kernel, &bad.host.kernel),
        ("operating system", &good.host.os, &bad.host.os),
        ("C library", &good.host.libc, &bad.host.libc),
        ("machine", &good.host.machine, &bad.host.machine),
    ] {
        if before != after && !before.is_empty() && !after.is_empty() {
            // The C library carries the loader: it can matter. A name or a kernel release does not by itself.
            let weight = if what == "C library" || what == "machine" {
                Weight::Cause
            } else {
                Weight::None
            };
            changes.push(
                Change::new(
                    Kind::Host,
                    weight,
                    format!("the {what} is {after} instead of {before}"),
                )
                .of(None, Some(what))
                .sides(Facet::new(before, &[]), Facet::new(after, &[])),
            );
        }
    }
}

/// Toolkits that only one machine has. Used ones show in what was resolved; the others can only be a remedy.
fn toolkits(good: &Report, bad: &Report, changes: &mut Vec<Change>) {
    let apart = other_host(good, bad);
    let missing = |from: &Report, of: &Report| -> Vec<String> {
        of.toolkits
            .iter()
            .filter(|toolkit| {
                from.toolkits.iter().all(|other| {
                    lasting(&other.root) != lasting(&toolkit.root)
                        && !(apart
                            && other.version == toolkit.version
                            && other.kind == toolkit.kind)
                })
            })
            .map(|toolkit| {
                format!(
                    "{} {} at {}",
                    toolkit.kind,
                    toolkit.version.as_deref().unwrap_or("?"),
                    toolkit.root
                )
            })
            .collect()
    };
    for (run, only) in [("good", missing(bad, good)), ("bad", missing(good, bad))] {
        if only.is_empty() {
            continue;
        }
        let facet = Facet::new(only.join(", "), &[]);
        let change = Change::new(
            Kind::Toolkit,
            Weight::None,
            format!("only the {run} run has toolkit {}", only.join(", ")),
        )
        .because("no component resolved a file of it, or that is listed above");
        changes.push(if run == "good" {
            change.sides(facet, None)
        } else {
            change.sides(None, facet)
        });
    }
}

fn end(good: &Report, bad: &Report, changes: &mut Vec<Change>) {
    if good.exit != bad.exit {
        let (before, after) = (phrase::exit(good.exit), phrase::exit(bad.exit));
        let weight = match (good.exit, bad.exit) {
            // One of them was cut off or still runs: that is no outcome.
            (None, _) | (_, None) => Weight::None,
            _ => Weight::Consequence,
        };
        changes.push(
            Change::new(
                Kind::Exit,
                weight,
                format!("the command {after}, in the good run it {before}"),
            )
            .sides(Facet::new(before, &[]), Facet::new(after, &[])),
        );
    }
    let (before, after) = (good.duration_ns.max(1), bad.duration_ns.max(1));
    let slower = after > before.saturating_mul(3) && after - before > 5_000_000_000;
    let faster = before > after.saturating_mul(3) && before - after > 5_000_000_000;
    if slower || faster {
        changes.push(
            Change::new(
                Kind::Duration,
                Weight::None,
                format!(
                    "it took {} instead of {}",
                    phrase::duration(after),
                    phrase::duration(before)
                ),
            )
            .because("time alone says nothing"),
        );
    }
}
