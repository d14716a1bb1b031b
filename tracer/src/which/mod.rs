//! `jittrace which`: what each installed component would resolve here and now, without running it.
//!
//! A prediction from what is known of the packages ([`jittrace_model::component`]), the environment, the files and the
//! loader's replayed search. A trace tells what really happens; where the two differ, the trace is right.

mod walk;

use std::{
    collections::HashMap,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Result, bail};
use jittrace_model::{
    component,
    distribution::{Distribution, Index},
    report::{Candidate, phrase},
};
use serde::Serialize;

use self::walk::Surroundings;
use crate::{
    cli::{PlainFormat, WhichArgs},
    collect::HostFiles,
    packages,
};

/// The whole answer; also the JSON form.
#[derive(Debug, Serialize)]
struct Answer {
    schema: &'static str,
    /// The interpreter whose packages are meant.
    python: String,
    /// Variables that were pretended.
    set: Vec<String>,
    components: Vec<Predicted>,
}

/// One component.
#[derive(Debug, Serialize)]
struct Predicted {
    name: String,
    distribution: String,
    version: String,
    built_for: Option<String>,
    parts: Vec<Part>,
}

/// One part of a component.
#[derive(Debug, Serialize)]
struct Part {
    part: String,
    path: Option<String>,
    version: Option<String>,
    version_from: Option<String>,
    rule: &'static str,
    rule_detail: String,
    candidates: Vec<Candidate>,
    /// What is wrong with the answer: a root without the tool, a release below what the component demands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
}

/// Predicts and prints.
///
/// # Errors
/// A `--set` that is no NAME=VALUE; an interpreter that is not there; an output that cannot be written.
pub fn which(args: &WhichArgs) -> Result<ExitCode> {
    let mut environment: HashMap<String, String> = std::env::vars_os()
        .filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)))
        .collect();
    for pair in &args.set {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            eprintln!("jittrace: --set takes NAME=VALUE, not {pair:?}");
            return Ok(ExitCode::from(2));
        };
        if value.is_empty() {
            environment.remove(name);
        } else {
            environment.insert(name.to_owned(), value.to_owned());
        }
    }
    let python = interpreter(args.python.as_deref(), &environment)?;
    let answer = predict(&python, &environment, args.set.clone());
    let text = match args.format {
        PlainFormat::Json => serde_json::to_string_pretty(&answer)? + "\n",
        PlainFormat::Text => text(&answer),
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn interpreter(asked: Option<&Path>, environment: &HashMap<String, String>) -> Result<PathBuf> {
    let found = match asked {
        Some(path) if path.components().count() > 1 => {
            Some(path.to_owned()).filter(|p| p.is_file())
        }
        name => {
            let name = name.unwrap_or(Path::new("python3"));
            let path = environment.get("PATH").cloned().unwrap_or_default();
            path.split(':')
                .map(|d| Path::new(d).join(name))
                .find(|p| p.is_file())
        }
    };
    match found {
        Some(python) => Ok(python),
        None => bail!(
            "there is no {}; name the interpreter of the environment with --python",
            asked.map_or("python3 on PATH".to_owned(), |p| p.display().to_string())
        ),
    }
}

fn predict(python: &Path, environment: &HashMap<String, String>, set: Vec<String>) -> Answer {
    let mut sites: Vec<PathBuf> = environment
        .get("PYTHONPATH")
        .into_iter()
        .flat_map(|list| list.split(':'))
        .filter(|entry| !entry.is_empty())
        .map(PathBuf::from)
        .collect();
    let real = python.canonicalize().unwrap_or_else(|_| python.to_owned());
    sites.extend(packages::sites_of(Some(python.to_owned()), &real));
    let mut index = Index::new();
    for site in &sites {
        index.add_site_packages(site, &HostFiles);
    }
    let surroundings = Surroundings::new(python, environment, &sites, &index);
    let installed: Vec<&Distribution> = index
        .distributions()
        .iter()
        .filter(|d| component::find(&d.name).is_some_and(|c| !c.searches.is_empty()))
        .collect();
    let components = installed
        .into_iter()
        .filter_map(|distribution| {
            let known = component::find(&distribution.name)?;
            let parts = surroundings.parts(known, distribution);
            (!parts.is_empty()).then(|| Predicted {
                name: known.name.to_owned(),
                distribution: distribution.name.clone(),
                version: distribution.version.clone(),
                built_for: packages::built_for(distribution).map(|(release, _)| release),
                parts,
            })
        })
        .collect();
    Answer {
        schema: "jittrace.which/1",
        python: python.to_string_lossy().into_owned(),
        set,
        components,
    }
}

fn text(answer: &Answer) -> String {
    let mut out = format!("what would be resolved with {}", answer.python);
    if !answer.set.is_empty() {
        out.push_str(&format!(" and {}", answer.set.join(" ")));
    }
    out.push('\n');
    if answer.components.is_empty() {
        out.push_str("  none of the components that jittrace knows is installed there; name another interpreter with --python\n");
        return out;
    }
    for component in &answer.components {
        let built_for = component
            .built_for
            .as_ref()
            .map_or(String::new(), |b| format!(" (for {b})"));
        out.push_str(&format!(
            "\n{} {}{built_for}\n",
            component.name, component.version
        ));
        for part in &component.parts {
            let version = part.version.as_deref().unwrap_or("–");
            let place = part
                .path
                .as_deref()
                .map_or_else(|| "not found".to_owned(), |p| phrase::short_path(p, 44));
            out.push_str(&format!(
                "  {:<13} {version:<9} {:<19} {place}\n",
                part.part, part.rule
            ));
            if !part.rule_detail.is_empty() && part.path.is_some() && part.rule != "bundled" {
                out.push_str(&format!(
                    "  {:<13} {:<9} by {}\n",
                    "",
                    "",
                    phrase::short_path(&part.rule_detail, 66)
                ));
            }
            for remark in &part.remarks {
                out.push_str(&format!("  {:<13} ! {remark}\n", ""));
            }
        }
    }
    out.push_str("\nA prediction from each package's rules; a trace (jittrace -- COMMAND) shows what really happens.\n");
    out
}
