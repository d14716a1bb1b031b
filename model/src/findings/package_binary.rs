//! `package-lacks-release`: a package brings one binary for each CUDA release, and has none for the one that it met.
//!
//! bitsandbytes takes the release from torch, makes a file name of it and looks for that file beside itself. Proof: its
//! sentence with the file that is not there.

use super::{
    Draft, View,
    aftermath::Aftermath,
    words::{directory, name, quoted},
};
use crate::resolve::asker;

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    let said = view
        .said(&["package-binary-missing"])
        .find_map(|m| Some((m, file_in(&m.what.text)?)));
    let Some((message, file)) = said else {
        return Vec::new();
    };
    let Some((stem, release)) = release_of(name(file)) else {
        return Vec::new();
    };
    let package = view
        .carrier(file)
        .unwrap_or_else(|| stem.trim_start_matches("lib").to_owned());
    let asker = asker::of_call(view.model, &[], None, message.process);
    let severity = Aftermath::of_process(view, message.process).of_a_sentence(false);
    let built = view.built_for("torch");
    let variable = VARIABLES.iter().find(|(p, _)| *p == package);
    let beside = directory(file);
    let mut draft = Draft::of("package-lacks-release", severity)
        .component(&package)
        .title(format!("{package} has no binary for CUDA {release}"))
        .cause(format!(
            "{package} looked for {file}, its binary for CUDA {release}, and has none: {}.",
            quoted(&message.what.text)
        ))
        .cause(if asker.component == package {
            String::new()
        } else {
            format!("{} asked for it.", asker.component)
        })
        .evidence(message.id, view.said_by(message))
        .in_process(message.pid);
    if let Some((torch, known)) = &built {
        draft = draft
            .cause(format!(
                "The release is that of {torch}, which is built for CUDA {}.",
                known.version.without_patch()
            ))
            .evidence(
                known.event,
                format!("{torch} is built for CUDA {}", known.version),
            );
    }
    if let Some((_, variable)) = variable {
        draft = draft.remedy(format!(
            "Set {variable} to a release of the same major that is there, as its digits (130 for 13.0); ls {beside}/{stem}_cuda*.so shows them."
        ));
    }
    vec![
        draft
            .remedy(format!(
                "Install a {package} that knows CUDA {release}: pip install --upgrade {package}."
            ))
            .proven(),
    ]
}

/// Packages, and the variable that names another release to them.
const VARIABLES: &[(&str, &str)] = &[("bitsandbytes", "BNB_CUDA_VERSION")];

/// The file of `Configured CUDA binary not found at /x/libbitsandbytes_cuda132.so`.
fn file_in(text: &str) -> Option<&str> {
    text.split([' ', '\'', '"', ','])
        .map(|word| word.trim_end_matches(['.', ':', ')']))
        .find(|word| word.starts_with('/') && word.ends_with(".so") && word.contains("_cuda"))
}

/// `libbitsandbytes` and 13.2 of `libbitsandbytes_cuda132.so`.
fn release_of(file: &str) -> Option<(&str, String)> {
    let (stem, rest) = file.strip_suffix(".so")?.rsplit_once("_cuda")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    (!major.is_empty()).then(|| (stem, format!("{major}.{minor}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_in_the_name_of_the_file() {
        assert_eq!(
            release_of("libbitsandbytes_cuda132.so"),
            Some(("libbitsandbytes", "13.2".to_owned()))
        );
        assert_eq!(
            release_of("libbitsandbytes_cuda118_nocublaslt.so"),
            Some(("libbitsandbytes", "11.8".to_owned()))
        );
        assert_eq!(release_of("libbitsandbytes_cpu.so"), None);
        assert_eq!(
            file_in(
                "RuntimeError: Configured CUDA binary not found at /s/b/libbitsandbytes_cuda132.so"
            ),
            Some("/s/b/libbitsandbytes_cuda132.so")
        );
        assert_eq!(file_in("Configured CUDA binary not found at {path}"), None);
    }
}
