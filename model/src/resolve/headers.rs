//! Why a compiler read the CUDA headers that it read.

use crate::{
    event::{FileFact, Rule},
    fold::{Model, Process},
};

use super::tool;

/// Variables whose directories a host compiler searches (gcc manual, "Environment Variables Affecting GCC").
const VARIABLES: &[&str] = &["CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"];

/// The rule that led `process` to the header at `path`, and what decided: nvcc's own directory, a variable, or who
/// brought the directory that was named on the command line. `fact` is what is known of the file.
pub(super) fn rule(
    model: &Model,
    process: &Process,
    path: &str,
    fact: Option<&FileFact>,
) -> (Rule, String) {
    if let Some(nvcc) = tool::under_nvcc(model, process) {
        return (
            Rule::ToolRelative,
            format!("include directory of {}", nvcc.program),
        );
    }
    let arguments = process.arguments();
    let asked = arguments.iter().enumerate().find_map(|(at, word)| {
        let directory = match word.as_str() {
            "-I" | "-isystem" | "-iquote" => arguments.get(at + 1)?,
            joined => ["-I", "-isystem"]
                .iter()
                .find_map(|f| joined.strip_prefix(f))?,
        };
        tool::under(path, directory).then_some(directory)
    });
    let Some(directory) = asked else {
        let of_variable = VARIABLES.iter().find_map(|name| {
            let value = process.env(name)?;
            let entry = value.split(':').find(|entry| tool::under(path, entry))?;
            Some((Rule::OverrideVariable, format!("{name}={entry}")))
        });
        return of_variable.unwrap_or_default();
    };
    let owner = fact.and_then(|f| f.distribution.as_deref());
    match (fact.and_then(|f| f.toolkit_kind.as_deref()), owner) {
        (Some("bundled"), Some(owner)) => (Rule::Bundled, format!("the copy that {owner} carries")),
        (Some("wheel"), Some(owner)) => (Rule::Wheel, owner.to_owned()),
        _ => (
            Rule::Unknown,
            format!("-I{directory} of {}", process.name()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{Body, Event, ProcessStart, Source};
    use crate::log::Header;

    use super::*;

    fn read_by(argv: &[&str], env: &[(&str, &str)], fact: Option<(&str, &str)>) -> (Rule, String) {
        let mut model = Model::new(Header::default());
        model.apply(Event {
            id: 1,
            t: 0,
            pid: 7,
            tid: 7,
            source: Source::Preload,
            same_as: None,
            body: Body::ProcessStart(Box::new(ProcessStart {
                exe: "/usr/bin/gcc".to_owned(),
                argv: argv.iter().map(|a| (*a).to_owned()).collect(),
                env: env
                    .iter()
                    .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                    .collect(),
                ..ProcessStart::default()
            })),
        });
        let process = model.process(0).expect("the process that began");
        let fact = fact.map(|(kind, owner)| FileFact {
            toolkit_kind: Some(kind.to_owned()),
            distribution: Some(owner.to_owned()),
            ..FileFact::default()
        });
        rule(&model, process, "/sp/triton/include/cuda.h", fact.as_ref())
    }

    #[test]
    fn who_named_the_directory_decides() {
        let named = |rule: Rule, detail: &str| (rule, detail.to_owned());
        let bundled = Some(("bundled", "triton"));
        let own = named(Rule::Bundled, "the copy that triton carries");
        assert_eq!(read_by(&["gcc", "-I/sp/triton/include"], &[], bundled), own);
        assert_eq!(
            read_by(&["gcc", "-isystem", "/sp/triton/include/"], &[], bundled),
            own
        );
        assert_eq!(
            read_by(&["gcc", "-I", "/sp/triton"], &[], None),
            named(Rule::Unknown, "-I/sp/triton of gcc")
        );
        assert_eq!(
            read_by(
                &["gcc", "-I/sp/tri"],
                &[("CPATH", "/a:/sp/triton/include")],
                bundled
            ),
            named(Rule::OverrideVariable, "CPATH=/sp/triton/include")
        );
        assert_eq!(
            read_by(&["gcc", "a.c"], &[], None),
            <(Rule, String)>::default()
        );
    }
}
