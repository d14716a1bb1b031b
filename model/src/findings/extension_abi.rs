//! `extension-abi-mismatch`: an extension was compiled with another release of the package whose C++ it calls.
//!
//! The names of torch's C++ functions change from release to release, and an extension knows those of the one that it was
//! compiled with. Proof: the loader's sentence with a name in the package's C++ namespace, and the package's libraries in
//! the process, none of which has it. An error when the program failed, a note when it went on without the extension.

use super::{
    Draft, View,
    aftermath::Aftermath,
    provider::{self, Failure, Reason},
    words::{directory, name, quoted},
};
use crate::{
    fold::normalized,
    report::Severity,
    resolve::{absolute, asker},
};

/// C++ namespaces, and the package that they are of.
const NAMESPACES: &[(&str, &str)] = &[
    ("c10", "torch"),
    ("at", "torch"),
    ("torch", "torch"),
    ("caffe2", "torch"),
    ("c10d", "torch"),
    ("tvm", "apache-tvm-ffi"),
    ("tensorflow", "tensorflow"),
    ("tsl", "tensorflow"),
    ("xla", "jaxlib"),
];

pub(super) fn find(view: &View<'_>) -> Vec<Draft> {
    provider::failures(view)
        .iter()
        .filter_map(|failure| match &failure.reason {
            Reason::NoSymbol { symbol, .. } => mismatch(view, failure, symbol),
            _ => None,
        })
        .collect()
}

fn mismatch(view: &View<'_>, failure: &Failure<'_>, symbol: &str) -> Option<Draft> {
    let qualified = qualified_name(symbol)?;
    let (namespace, _) = qualified.split_once("::")?;
    let (_, package) = NAMESPACES.iter().find(|(n, _)| *n == namespace)?;
    provider::severity(view, failure)?;
    let cwd = failure
        .process
        .and_then(|p| view.model.process(p))
        .map(|p| p.what.cwd.clone())
        .unwrap_or_default();
    let object = absolute(&cwd, &failure.object);
    let needed = view
        .model
        .file(&object)
        .map(|f| f.what.needed.clone())
        .unwrap_or_default();
    // The package's libraries in the process: those that the extension names, else all of them.
    let mut theirs: Vec<_> = view
        .loaded(failure.process)
        .filter(|l| is_of(view, &l.what.path, package))
        .collect();
    if theirs
        .iter()
        .any(|l| needed.iter().any(|n| n == name(&l.what.path)))
    {
        theirs.retain(|l| needed.iter().any(|n| n == name(&l.what.path)));
    }
    let library = theirs.first()?;
    let installed = view.model.distribution(package);
    let package_words = installed.map_or_else(
        || (*package).to_owned(),
        |d| format!("{} {}", d.what.name, d.what.version),
    );
    let cached = view.model.cache_fact(&object);
    let owner = view
        .model
        .file(&object)
        .and_then(|f| f.what.distribution.clone());
    let owner_words = owner.as_deref().map(|owner| {
        let bare = owner.split(' ').next().unwrap_or(owner);
        match view.model.distribution(bare) {
            Some(d) => format!("{} {}", d.what.name, d.what.version),
            None => owner.to_owned(),
        }
    });
    let python = failure.python(view).to_vec();
    let asker = asker::of_library(view.model, None, &python, failure.process);
    let component = match (&owner, cached) {
        (Some(owner), _) => crate::component::name_of(owner.split(' ').next().unwrap_or(owner)),
        (None, Some(cached)) => cached.what.owner.clone(),
        (None, None) => asker.component.clone(),
    };
    let severity = match Aftermath::of_process(view, failure.process) {
        Aftermath::Failed => Severity::Error,
        _ => Severity::Note,
    };
    let of_owner = owner_words
        .as_ref()
        .map(|o| format!(" ({o})"))
        .unwrap_or_default();
    let mut draft = Draft::of("extension-abi-mismatch", severity)
        .component(&component)
        .title(format!(
            "{} was compiled with another {package} than {package_words}",
            name(&object)
        ))
        .cause(format!(
            "{object}{of_owner} needs {qualified} ({symbol}), which {} of {package_words} does not have. An extension runs with the {package} release that it was compiled with.",
            library.what.path
        ))
        .cause(string_abi(symbol))
        .evidence(
            failure.event,
            format!("the load failed: {}", quoted(&failure.text)),
        )
        .evidence(library.id, format!("{} is loaded", library.what.path))
        .evidence_of(installed.map(|d| (d.id, format!("{package_words} is installed"))))
        .evidence_of(
            provider::said_so(view, failure)
                .filter(|m| m.id != failure.event)
                .map(|m| (m.id, view.said_by(m))),
        )
        .in_process(failure.pid);
    if let Some(cached) = cached {
        draft = draft
            .cause("It comes from a cache, where an earlier run built it.")
            .evidence(
                cached.id,
                format!("{object} lies in the cache {}", cached.what.directory),
            )
            .remedy(format!(
                "Delete {} to have it built anew with {package_words}.",
                directory(&object)
            ));
        return Some(draft.proven());
    }
    let release: Vec<&str> = installed
        .map(|d| d.what.version.split(['.', '+']).take(2).collect())
        .unwrap_or_default();
    let release = release.join(".");
    let remedy = match &owner {
        Some(owner) => {
            let bare = normalized(owner.split(' ').next().unwrap_or(owner));
            format!(
                "Install a build of {bare} for {package} {release}, or compile it here: pip install --force-reinstall --no-deps --no-build-isolation --no-binary {bare} {bare}."
            )
        }
        None => format!("Compile {} anew with {package_words}.", name(&object)),
    };
    Some(draft.remedy(remedy).proven())
}

/// Whether a library is part of a package: by its owner, or by the directory of site-packages that it lies in.
fn is_of(view: &View<'_>, path: &str, package: &str) -> bool {
    let recorded = view
        .model
        .file(path)
        .and_then(|f| f.what.distribution.as_deref());
    match recorded {
        Some(owner) => normalized(owner.split(' ').next().unwrap_or(owner)) == package,
        None => view
            .carrier(path)
            .is_some_and(|carrier| carrier == crate::component::name_of(package)),
    }
}

/// What the spelling of a string says of the compiler's ABI: an extension and torch must agree on it.
fn string_abi(symbol: &str) -> &'static str {
    if symbol.contains("NSt7__cxx11") {
        "The name is of the C++11 ABI of strings (cxx11abiTRUE)."
    } else if symbol.ends_with("Ss") || symbol.contains("ESs") || symbol.contains("RKSs") {
        "The name is of the ABI of strings before C++11 (cxx11abiFALSE), which torch 2.7 and newer do not have."
    } else {
        ""
    }
}

/// `c10::cuda::SetDevice` of `_ZN3c104cuda9SetDeviceEi`: the nested name of a mangled one, without its parameters.
fn qualified_name(symbol: &str) -> Option<String> {
    let rest = symbol.strip_prefix("_Z")?;
    // The table, the name or the type description of a class; a guard of a static.
    let rest = ["TV", "TI", "TS", "TT", "GV"]
        .iter()
        .find_map(|special| rest.strip_prefix(special))
        .unwrap_or(rest);
    let mut rest = rest
        .strip_prefix('N')?
        .trim_start_matches(['K', 'V', 'r', 'R', 'O']);
    let mut parts: Vec<&str> = Vec::new();
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Some(length) = rest.get(..digits).and_then(|d| d.parse::<usize>().ok()) else {
            break;
        };
        let Some(part) = rest.get(digits..digits.checked_add(length)?) else {
            break;
        };
        parts.push(part);
        rest = rest.get(digits + length..).unwrap_or_default();
    }
    (!parts.is_empty()).then(|| parts.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_names_are_read() {
        for (symbol, name) in [
            ("_ZN3c104cuda9SetDeviceEi", Some("c10::cuda::SetDevice")),
            ("_ZN3c105ErrorC2ENS_14SourceLocationESs", Some("c10::Error")),
            ("_ZNK3c1010TensorImpl4sizeEl", Some("c10::TensorImpl::size")),
            ("_ZTVN5torch8autograd4NodeE", Some("torch::autograd::Node")),
            ("_ZSt21ios_base_library_initv", None),
            ("_ZN9", None),
            ("_ZN99999999999999999999a", None),
            ("cuInit", None),
            ("", None),
        ] {
            assert_eq!(qualified_name(symbol).as_deref(), name, "{symbol}");
        }
    }

    #[test]
    fn the_spelling_of_strings_tells_their_abi() {
        assert!(string_abi("_ZN3c105ErrorC2ENS_14SourceLocationESs").contains("before C++11"));
        assert!(string_abi("_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE").contains("cxx11abiTRUE"));
        assert_eq!(string_abi("_ZN3c104cuda9SetDeviceEi"), "");
    }
}
