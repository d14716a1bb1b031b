//! Running a program under the oracle, replaying it, and comparing the two.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use jittrace_model::loader::{
    Candidate, Flags, LinkMap, ObjectId, Outcome, ProcessStart, Request, Rule, Search, System,
};

use super::host::Host;
use super::log::{Asked, Line, lines};

/// A program to run: its file, arguments, directory and environment.
pub(crate) struct Program {
    pub(crate) file: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) environment: Vec<(String, String)>,
}

/// What running it gave.
pub(crate) struct Run {
    pub(crate) log: Vec<Line>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) success: bool,
}

impl Program {
    /// Runs it with the loader's debug output in a file.
    pub(crate) fn run(&self) -> Run {
        let logs = tempfile::tempdir().unwrap();
        let mut command = Command::new(&self.file);
        command
            .args(&self.arguments)
            .current_dir(&self.cwd)
            .env_clear()
            .envs(
                ["PATH", "HOME"]
                    .iter()
                    .filter_map(|name| Some((name, std::env::var_os(name)?))),
            )
            .env("LC_ALL", "C")
            .envs(self.environment.iter().cloned())
            .env("LD_DEBUG", "libs,files")
            .env("LD_DEBUG_OUTPUT", logs.path().join("ld"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        let text = fs::read_to_string(logs.path().join(format!("ld.{pid}"))).unwrap();
        Run {
            log: lines(&text, pid),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            success: output.status.success(),
        }
    }

    pub(crate) fn start(&self) -> ProcessStart {
        let variable = |name: &str| {
            self.environment
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        };
        ProcessStart {
            executable: text(&fs::canonicalize(&self.file).unwrap()),
            cwd: text(&self.cwd),
            ld_library_path: variable("LD_LIBRARY_PATH"),
            ld_preload: variable("LD_PRELOAD"),
            preload_file: fs::read_to_string("/etc/ld.so.preload").ok(),
            secure: false,
        }
    }
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A replay under way.
pub(crate) struct Replay {
    pub(crate) files: Host,
    pub(crate) map: LinkMap,
    pub(crate) searches: Vec<Search>,
}

impl Replay {
    pub(crate) fn start(system: &Arc<System>, program: &Program) -> Self {
        let files = Host::default();
        let (map, searches) = LinkMap::start(Arc::clone(system), &program.start(), &files);
        Self {
            files,
            map,
            searches,
        }
    }

    pub(crate) fn request(
        &mut self,
        name: &str,
        requester: Option<ObjectId>,
        flags: Flags,
    ) -> Search {
        let request = Request {
            name,
            requester,
            flags,
        };
        let search = self.map.request(&request, &self.files);
        self.searches.extend(search.iter().cloned());
        search
    }

    /// Takes requests, bindings, closes and failures from the log, as the shim would report them, and checks that what
    /// the replay unmaps by them is what the loader unmapped.
    pub(crate) fn follow(&mut self, log: &[Line], program: &Program) {
        let argv0 = text(&program.file);
        let find = |map: &LinkMap, path: &str| -> Option<ObjectId> {
            if path == argv0 || path.is_empty() {
                return Some(map.executable());
            }
            map.object_by_path(path)
        };
        let (mut replayed, mut told) = (Vec::new(), Vec::new());
        let begin = log.iter().position(|line| *line == Line::Started).unwrap();
        // Requests that the loader did not confirm yet.
        let mut open: Vec<Search> = Vec::new();
        for line in &log[begin..] {
            match line {
                Line::Asked(asked) if asked.dlopen => {
                    let by = find(&self.map, &asked.by);
                    assert!(by.is_some(), "unknown requester in {asked:?}");
                    let search = self.request(&asked.name, by, Flags::default());
                    if search.error.is_none() {
                        open.push(search);
                    } else {
                        // A missing need: the replay took back what this request had mapped.
                        assert!(
                            search
                                .mapped
                                .iter()
                                .all(|id| self.map.object(*id).is_none())
                        );
                        let winners = search.iter().filter_map(|search| search.winner.as_ref());
                        replayed.extend(winners.filter(|w| w.mapped).map(|w| w.path.clone()));
                    }
                }
                Line::Opened(path, _) => {
                    let id = find(&self.map, path);
                    let id = id.unwrap_or_else(|| panic!("{path} is opened and unknown"));
                    let winner =
                        |search: &Search| search.winner.as_ref().map(|winner| winner.object);
                    if let Some(at) = open.iter().rposition(|search| winner(search) == Some(id)) {
                        open.remove(at);
                    } else if id != self.map.executable() {
                        // Answered by a loaded object: the loader names no requester and no name.
                        let request = Request {
                            name: path,
                            requester: None,
                            flags: Flags::default(),
                        };
                        assert_eq!(
                            self.map.request(&request, &self.files).rule,
                            Rule::AlreadyLoaded
                        );
                    }
                }
                Line::Closing(path, left) => {
                    let id = find(&self.map, path)
                        .unwrap_or_else(|| panic!("{path} is closed and unknown"));
                    assert!(*left > 0 && self.map.closed(id).is_empty(), "{line:?}");
                }
                // The loader is silent about a last `dlclose` but for what it unmaps.
                Line::Destroyed(path) => {
                    told.push(path.clone());
                    let Some(id) = find(&self.map, path) else {
                        continue;
                    };
                    let paths: BTreeMap<ObjectId, String> = self
                        .map
                        .objects()
                        .map(|(id, object)| (id, object.path.clone()))
                        .collect();
                    if let Some(at) = open.iter().position(|search| search.mapped.contains(&id)) {
                        // Never confirmed: the request failed after its search.
                        let search = open.remove(at);
                        replayed.extend(search.mapped.iter().map(|id| paths[id].clone()));
                        self.map.failed(&search);
                    } else {
                        replayed.extend(self.map.closed(id).iter().map(|id| paths[id].clone()));
                    }
                }
                Line::Bound(user, provider) => {
                    if let (Some(user), Some(provider)) =
                        (find(&self.map, user), find(&self.map, provider))
                    {
                        self.map.bound(user, provider);
                    }
                }
                Line::Asked(_) | Line::Started => {}
            }
        }
        replayed.sort();
        told.sort();
        assert_eq!(replayed, told, "replayed and real unmapping");
    }

    /// The searches in the form of the oracle: those that it tells of at all.
    ///
    /// The loader keeps one record of a directory for all search paths, and prints the name of the path that had it
    /// first; so here, for directories that several paths name.
    pub(crate) fn told(&self, system: &System, program: &Program) -> Vec<Asked> {
        let mut first: HashMap<String, Rule> = HashMap::new();
        for directory in &system.default_directories {
            first.insert(directory.clone(), Rule::LdDefaultDirectory);
        }
        // The executable's own path comes before the variable here, though not in the search.
        let executable = self.map.object(self.map.executable()).unwrap();
        let elf = executable.elf.as_deref().unwrap();
        let origin = Path::new(&executable.path).parent().unwrap();
        for (path, rule) in [(&elf.runpath, Rule::Runpath), (&elf.rpath, Rule::Rpath)] {
            for entry in path.iter().flat_map(|path| path.split(':')) {
                let directory = entry.replace("$ORIGIN", &text(origin));
                first.entry(directory).or_insert(rule);
            }
        }
        for entry in program
            .start()
            .ld_library_path
            .unwrap_or_default()
            .split([':', ';'])
        {
            first
                .entry(entry.trim_end_matches('/').to_owned())
                .or_insert(Rule::LdLibraryPath);
        }
        let mut label = |candidate: &Candidate, name: &str| -> (String, String) {
            let path = &candidate.path;
            if candidate.rule == Rule::LdSoCache {
                return (candidate.rule.word().to_owned(), path.clone());
            }
            let mut directory = path.strip_suffix(name).unwrap().trim_end_matches('/');
            for subdirectory in &system.subdirectories {
                if let Some(plain) = directory.strip_suffix(&format!("/{subdirectory}")) {
                    directory = plain;
                    break;
                }
            }
            let rule = *first.entry(directory.to_owned()).or_insert(candidate.rule);
            (rule.word().to_owned(), path.clone())
        };
        self.searches
            .iter()
            .filter(|search| !search.candidates.is_empty() || search.error.is_some())
            .map(|search| Asked {
                name: search.requested.clone(),
                by: search.requested_by.clone(),
                dlopen: false,
                tried: if search.requested.contains('/') {
                    Vec::new()
                } else {
                    // The loader prints a cache entry before it decides to keep it out.
                    let kept_out = |c: &&Candidate| c.rule_detail.contains("kept out by");
                    search
                        .candidates
                        .iter()
                        .chain(search.not_tried.iter().filter(kept_out))
                        .map(|c| label(c, &search.requested))
                        .collect()
                },
                // An executable is refused only after it got its place in the link map.
                mapped: search.winner.as_ref().is_some_and(|winner| winner.mapped)
                    || search
                        .error
                        .as_ref()
                        .is_some_and(|e| e.contains("position-independent")),
            })
            .collect()
    }
}

/// Both sides as multisets; panics with all differences. Gives the number of searches compared.
pub(crate) fn compare(replay: &Replay, log: &[Line], program: &Program) -> usize {
    let executable = text(&fs::canonicalize(&program.file).unwrap());
    let argv0 = text(&program.file);
    let oracle: Vec<Asked> = log
        .iter()
        .filter_map(|line| match line {
            Line::Asked(asked) => Some(asked.clone()),
            _ => None,
        })
        .map(|mut asked| {
            asked.dlopen = false;
            if asked.by == argv0 {
                asked.by.clone_from(&executable);
            }
            asked
        })
        .collect();
    let replayed = replay.told(&super::host::system(), program);
    let mut count: BTreeMap<Asked, (i32, i32)> = BTreeMap::new();
    for asked in &oracle {
        count.entry(asked.clone()).or_default().0 += 1;
    }
    for asked in &replayed {
        count.entry(asked.clone()).or_default().1 += 1;
    }
    let differences: Vec<String> = count
        .iter()
        .filter(|(_, (oracle, replay))| oracle != replay)
        .map(|(asked, (oracle, replay))| format!("loader {oracle}×, replay {replay}×: {asked:#?}"))
        .collect();
    assert!(
        differences.is_empty(),
        "{} of {} searches differ:\n{}",
        differences.len(),
        oracle.len(),
        differences.join("\n")
    );
    // A winner is the last file that was tried.
    for search in &replay.searches {
        let chosen = search
            .candidates
            .iter()
            .position(|c| c.outcome == Outcome::Chosen);
        assert!(
            chosen.is_none_or(|at| at + 1 == search.candidates.len()),
            "{search:#?}"
        );
    }
    oracle.len()
}
