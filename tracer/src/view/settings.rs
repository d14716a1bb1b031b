//! The file of settings of the view: where it is by the XDG rules, and what is said when it cannot be heeded.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use jittrace_tui::Settings;

/// The file, within a directory of configuration.
const NAME: &str = "jittrace/view.toml";

/// Longest file that is read, in bytes; one that says everything is some ten thousand long.
const LONGEST: u64 = 1 << 20;

/// The settings of whoever runs this; what comes when there is no file, or none that can be read.
pub fn settings() -> Settings {
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    places(variable)
        .into_iter()
        .find(|path| path.exists())
        .map(|path| read(&path))
        .unwrap_or_default()
}

/// Where a file may be, the first that counts first: the user's directory, then those of the system.
fn places(variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    // Paths that are not absolute are to be ignored (XDG Base Directory Specification).
    let absolute = |path: PathBuf| Some(path).filter(|path| path.is_absolute());
    let home = variable("XDG_CONFIG_HOME")
        .and_then(|path| absolute(path.into()))
        .or_else(|| absolute(PathBuf::from(variable("HOME")?).join(".config")));
    let system = variable("XDG_CONFIG_DIRS").unwrap_or_else(|| "/etc/xdg".to_owned());
    let system = system.split(':').map(PathBuf::from).filter_map(absolute);
    home.into_iter()
        .chain(system)
        .map(|directory| directory.join(NAME))
        .collect()
}

/// The settings of a file; where it cannot be read they are what they are without one, and say why.
fn read(path: &Path) -> Settings {
    let shown = path.display();
    let problem = match text(path) {
        Ok(text) => match Settings::parse(&text) {
            Ok(settings) => return settings,
            Err(error) => format!("{shown}, {error}."),
        },
        Err(error) => format!("{shown} cannot be read: {error}."),
    };
    Settings {
        problem: Some(format!(
            "{problem} Until that is put right the view is as it comes."
        )),
        ..Settings::default()
    }
}

fn text(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let mut text = String::new();
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jittrace_tui::keys::Action;

    #[test]
    fn the_file_is_where_the_xdg_rules_put_it() {
        for (variables, expected) in [
            (
                &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")][..],
                &["/c/jittrace/view.toml", "/etc/xdg/jittrace/view.toml"][..],
            ),
            (
                &[("HOME", "/h"), ("XDG_CONFIG_HOME", "relative")],
                &[
                    "/h/.config/jittrace/view.toml",
                    "/etc/xdg/jittrace/view.toml",
                ],
            ),
            (
                &[("XDG_CONFIG_DIRS", "/a:b:/c")],
                &["/a/jittrace/view.toml", "/c/jittrace/view.toml"],
            ),
        ] {
            let found = places(|name| {
                let mut all = variables.iter();
                all.find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
            });
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(found, expected, "{variables:?}");
        }
    }

    #[test]
    fn a_file_is_heeded_or_said_to_be_wrong() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("view.toml");
        let written = |text: &[u8]| {
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        let settings = written(b"[keys.everywhere]\nhelp = \"F2\"\n");
        assert_eq!(settings.problem, None);
        let mut bound = settings.keys.all();
        let help = bound.find(|b| b.action == Action::Help);
        assert_eq!(help.map(|b| b.keys.clone()), Some(vec!["F2".to_owned()]));
        let shown = path.display();
        for (text, told) in [
            (
                &b"share = 30\n[keys.everywhere]\nhlep = \"F2\"\n"[..],
                format!(
                    "{shown}, line 3: no action is called hlep; `jittrace view --defaults` lists them all. Until"
                ),
            ),
            (
                b"\xff",
                format!("{shown} cannot be read: stream did not contain valid UTF-8. Until"),
            ),
        ] {
            let settings = written(text);
            let problem = settings.problem.clone().unwrap_or_default();
            assert!(problem.starts_with(&told), "{problem}");
            // Nothing of a file that is wrong is heeded.
            let problem = settings.problem.clone();
            assert_eq!(
                settings,
                Settings {
                    problem,
                    ..Settings::default()
                }
            );
        }
        let settings = read(directory.path());
        let told = format!(
            "{} cannot be read: it is not a file.",
            directory.path().display()
        );
        assert!(settings.problem.unwrap_or_default().starts_with(&told));
    }
}
