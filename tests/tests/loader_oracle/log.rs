//! What the loader says of itself: the output of `LD_DEBUG=libs,files`, one process.

use jittrace_model::loader::Rule;

/// One line that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A name that is not yet known in the process is asked for, and how the search went.
    Asked(Asked),
    /// `dlopen` gave this object; the count of its opens.
    Opened(String, u32),
    /// `dlclose` of this object; the count of opens that remain.
    Closing(String, u32),
    /// An object was unmapped.
    Destroyed(String),
    /// A symbol of the first was bound to the second, which is no need of it.
    Bound(String, String),
    /// The program itself begins.
    Started,
}

/// One search, as the loader tells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) by: String,
    /// A `dlopen`; else a need.
    pub(crate) dlopen: bool,
    /// Files tried, each with the rule of the search path then in use. Nothing for a name with a slash.
    pub(crate) tried: Vec<(String, String)>,
    /// The last of them was mapped.
    pub(crate) mapped: bool,
}

/// The lines of one process in the text; other processes (forks) write into the same file.
pub(crate) fn lines(text: &str, pid: u32) -> Vec<Line> {
    let prefix = format!("{pid}:\t");
    let mut lines: Vec<Line> = Vec::new();
    let mut rule = Rule::Unknown;
    for line in text.lines() {
        let Some(line) = line.trim_start().strip_prefix(&prefix) else {
            continue;
        };
        let last = |lines: &mut Vec<Line>, name: Option<&str>| -> Option<usize> {
            lines.iter().rposition(
                |line| matches!(line, Line::Asked(a) if name.is_none_or(|name| a.name == name)),
            )
        };
        if let Some(rest) = line.strip_prefix("file=") {
            let (name, what) = rest.split_once(" [0];  ").unwrap();
            if let Some(by) = what.strip_prefix("needed by ") {
                let (by, bound) = match by.strip_suffix(" (relocation dependency)") {
                    Some(by) => (by, true),
                    None => (by, false),
                };
                let by = by.strip_suffix(" [0]").unwrap().to_owned();
                if bound {
                    lines.push(Line::Bound(by, name.to_owned()));
                } else {
                    lines.push(Line::Asked(asked(name, by, false)));
                }
            } else if let Some(by) = what.strip_prefix("dynamically loaded by ") {
                let by = by.strip_suffix(" [0]").unwrap().to_owned();
                lines.push(Line::Asked(asked(name, by, true)));
            } else if what == "generating link map" {
                let at = last(&mut lines, Some(name)).unwrap();
                let Line::Asked(asked) = &mut lines[at] else {
                    unreachable!()
                };
                asked.mapped = true;
            } else if what == "destroying link map" {
                lines.push(Line::Destroyed(name.to_owned()));
            } else {
                panic!("an unknown line of the loader: {line}");
            }
        } else if let Some(rest) = line.strip_prefix("opening file=") {
            let (path, count) = rest.split_once(" [0]; direct_opencount=").unwrap();
            lines.push(Line::Opened(path.to_owned(), count.parse().unwrap()));
        } else if let Some(rest) = line.strip_prefix("closing file=") {
            let (path, count) = rest.split_once("; direct_opencount=").unwrap();
            lines.push(Line::Closing(path.to_owned(), count.parse().unwrap()));
        } else if line.starts_with("initialize program: ") {
            lines.push(Line::Started);
        } else if line.starts_with(" search cache=") {
            rule = Rule::LdSoCache;
        } else if line.starts_with(" search path=") {
            let label = line.rsplit_once("\t\t(").unwrap().1;
            rule = match label {
                label if label.starts_with("RPATH from file") => Rule::Rpath,
                label if label.starts_with("RUNPATH from file") => Rule::Runpath,
                label if label.starts_with("LD_LIBRARY_PATH") => Rule::LdLibraryPath,
                label if label.starts_with("system search path") => Rule::LdDefaultDirectory,
                other => panic!("an unknown search path of the loader: {other}"),
            };
        } else if let Some(path) = line.strip_prefix("  trying file=") {
            let at = last(&mut lines, None).unwrap_or_else(|| panic!("nobody asked for {path}"));
            let Line::Asked(asked) = &mut lines[at] else {
                unreachable!()
            };
            asked.tried.push((rule.word().to_owned(), path.to_owned()));
        }
    }
    lines
}

fn asked(name: &str, by: String, dlopen: bool) -> Asked {
    Asked {
        name: name.to_owned(),
        by,
        dlopen,
        tried: Vec::new(),
        mapped: false,
    }
}
