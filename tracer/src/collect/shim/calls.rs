//! Calls of watched functions, and the look-ups that led to them.

use jittrace_model::event::{Body, Call, Image};
use jittrace_wire::record;

use super::{At, Translate, caller, frames, owned};
use crate::collect::draft::{Sink, answer};

impl Translate {
    pub(super) fn lookup(
        &mut self,
        at: At,
        lookup: &record::SymbolLookup<'_>,
        sink: &mut impl Sink,
    ) {
        let python = frames(&lookup.python);
        if lookup.thunk != 0 {
            self.process(at)
                .lookups
                .insert(lookup.thunk, python.clone());
        }
        let found = lookup.object.get().is_some();
        if found && lookup.result.unwrap_or(0) == 0 {
            return;
        }
        // A look-up that failed is a fact of its own; one that worked shows in its calls.
        sink.put(at.draft(Body::Call(Box::new(Call {
            function: owned(lookup.call),
            result: lookup.result.or(Some(-1)),
            args: vec![owned(lookup.name)],
            caller: caller(lookup.caller, lookup.offset),
            python,
            count: 1,
            ..Call::default()
        }))));
    }

    pub(super) fn call(&mut self, at: At, call: &record::Call<'_>, sink: &mut impl Sink) {
        let mut python = frames(&call.python);
        let at_lookup = python.is_empty() && call.thunk != 0;
        if at_lookup {
            python = self
                .processes
                .get(&at.header.pid)
                .and_then(|p| p.lookups.get(&call.thunk))
                .cloned()
                .unwrap_or_default();
        }
        let function = owned(call.function);
        let detail = call.detail.get().filter(|d| !d.is_empty());
        let result = call.result;
        let is_log =
            function.starts_with("nvrtcCompile") || function.starts_with("__nvJitLinkComplete");
        let (args, log) = match detail {
            Some(text) if is_log && text.contains("\n") => {
                let (options, log) = text.split_once("\n").unwrap_or((text, ""));
                (
                    words(options),
                    Some(log.to_owned()).filter(|l| !l.is_empty()),
                )
            }
            Some(text) => (words(text), None),
            None => (Vec::new(), None),
        };
        let by_file = matches!(function.as_str(), "cuModuleLoad" | "cuLibraryLoadFromFile")
            .then(|| args.first().cloned())
            .flatten();
        sink.put(at.draft(Body::Call(Box::new(Call {
            value: call.value.map(|value| answer(&function, value)),
            image: image(call.image.get(), by_file),
            function,
            object: call.object.get().map(str::to_owned),
            result,
            caller: caller(call.caller, call.offset),
            duration_ns: Some(call.duration),
            python_at_lookup: at_lookup && !python.is_empty(),
            python,
            args,
            log,
            count: 1,
        }))));
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(['\u{1f}', '\n'])
        .filter(|w| !w.is_empty())
        .map(str::to_owned)
        .collect()
}

/// `ptx version=8.7 target=sm_120a`, `cubin sm_90`, `fatbin sm_90 sm_120 ptx:sm_120` as the shim words it.
fn image(text: Option<&str>, file: Option<String>) -> Option<Image> {
    let mut words = text.unwrap_or_default().split_ascii_whitespace();
    let kind = words.next().unwrap_or_default();
    if kind.is_empty() && file.is_none() {
        return None;
    }
    let mut image = Image {
        kind: if kind.is_empty() {
            "unknown".to_owned()
        } else {
            kind.to_owned()
        },
        file,
        ..Image::default()
    };
    for word in words {
        if let Some(version) = word.strip_prefix("version=") {
            image.ptx_version = Some(version.to_owned());
        } else if let Some(target) = word.strip_prefix("target=") {
            image.target = Some(target.to_owned());
        } else if let Some(arch) = word.strip_prefix("ptx:") {
            image.archs.push(arch.replacen("sm_", "compute_", 1));
        } else {
            image.archs.push(word.to_owned());
        }
    }
    Some(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_read_as_the_shim_words_them() {
        let ptx = image(Some("ptx version=8.7 target=sm_120a"), None).unwrap();
        assert_eq!(
            (
                ptx.kind.as_str(),
                ptx.ptx_version.as_deref(),
                ptx.target.as_deref()
            ),
            ("ptx", Some("8.7"), Some("sm_120a"))
        );
        let fatbin = image(Some("fatbin sm_90 sm_120 ptx:sm_120"), None).unwrap();
        assert_eq!(fatbin.archs, ["sm_90", "sm_120", "compute_120"]);
        assert_eq!(image(None, None), None);
    }
}
