//! One answer to "who owns this path?", gathered from all the records of a machine or a trace.

use super::{Distribution, conda, debian, wheel};
use crate::toolkit::{Files, profile::normalize};
use std::collections::HashMap;
use std::path::Path;

/// How many paths are remembered, at most: a full server environment has about 300,000.
const MAX_PATHS: usize = 3_000_000;

/// Which distribution owns which file. Asked by path as text, without symbolic links.
#[derive(Debug, Clone, Default)]
pub struct Index {
    distributions: Vec<Distribution>,
    owners: HashMap<String, usize>,
    /// Package folders of distributions without a RECORD.
    folders: Vec<(String, usize)>,
}

impl Index {
    /// An index that knows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All distributions known.
    #[must_use]
    pub fn distributions(&self) -> &[Distribution] {
        &self.distributions
    }

    /// A distribution by its name, in any spelling (`flashinfer_python`, `Flashinfer-Python`).
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Distribution> {
        let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '.'], "-");
        let wanted = plain(name);
        self.distributions
            .iter()
            .find(|distribution| plain(&distribution.name) == wanted)
    }

    /// The owner of a file.
    #[must_use]
    pub fn owner(&self, path: &Path) -> Option<&Distribution> {
        let path = normalize(path).to_string_lossy().into_owned();
        let number = self.owners.get(&path).copied().or_else(|| {
            let inside = |folder: &str| {
                path.strip_prefix(folder)
                    .is_some_and(|rest| rest.starts_with('/'))
            };
            let folders = self.folders.iter().filter(|(folder, _)| inside(folder));
            folders
                .max_by_key(|(folder, _)| folder.len())
                .map(|(_, number)| *number)
        })?;
        self.distributions.get(number)
    }

    /// Adds a distribution and its files. `base` is the directory that relative paths start from.
    pub fn add<'a>(
        &mut self,
        distribution: Distribution,
        base: &Path,
        files: impl IntoIterator<Item = &'a str>,
    ) {
        let number = self.distributions.len();
        self.distributions.push(distribution);
        for file in files {
            if self.owners.len() >= MAX_PATHS {
                return;
            }
            let path = normalize(&base.join(file)).to_string_lossy().into_owned();
            self.owners.entry(path).or_insert(number);
        }
    }

    /// Adds everything that a `site-packages` directory records.
    ///
    /// A distribution without `METADATA` is known by its directory's name, one without `RECORD` owns the package
    /// folder of its own name.
    pub fn add_site_packages(&mut self, site: &Path, files: &dyn Files) {
        let mut names = files.names(site);
        names.sort_unstable();
        for name in names {
            if !(name.ends_with(".dist-info") || name.ends_with(".egg-info")) {
                continue;
            }
            let directory = site.join(&name);
            let text = |file: &str| {
                let bytes = files.head(&directory.join(file), 64 << 20)?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            };
            let record = directory.to_string_lossy();
            let metadata = text("METADATA").or_else(|| text("PKG-INFO"));
            let stated = metadata.and_then(|text| wheel::read_metadata(&text, &record));
            let Some(distribution) = stated.or_else(|| wheel::from_directory_name(&name, &record))
            else {
                continue;
            };
            if let Some(record) = text("RECORD") {
                let paths: Vec<String> = wheel::read_record(&record).collect();
                self.add(distribution, site, paths.iter().map(String::as_str));
            } else {
                let folder = site.join(distribution.name.to_ascii_lowercase().replace('-', "_"));
                self.folders.push((
                    folder.to_string_lossy().into_owned(),
                    self.distributions.len(),
                ));
                self.distributions.push(distribution);
            }
        }
    }

    /// Adds everything that a conda environment's `conda-meta` records.
    pub fn add_conda(&mut self, prefix: &Path, files: &dyn Files) {
        let directory = prefix.join("conda-meta");
        for name in files
            .names(&directory)
            .into_iter()
            .filter(|name| name.ends_with(".json"))
        {
            let path = directory.join(&name);
            let Some(bytes) = files.head(&path, 64 << 20) else {
                continue;
            };
            if let Some((package, paths)) =
                conda::read_conda_meta(&String::from_utf8_lossy(&bytes), &path.to_string_lossy())
            {
                self.add(package, prefix, paths.iter().map(String::as_str));
            }
        }
    }

    /// Adds the packages of dpkg's database (`/var/lib/dpkg`) whose list's name `wanted` accepts: a full system
    /// has thousands, and few of them matter.
    pub fn add_dpkg(&mut self, database: &Path, files: &dyn Files, wanted: impl Fn(&str) -> bool) {
        let text =
            |path: &Path| Some(String::from_utf8_lossy(&files.head(path, 256 << 20)?).into_owned());
        let Some(status) = text(&database.join("status")) else {
            return;
        };
        let status = debian::read_dpkg_status(&status);
        let lists = files.names(&database.join("info"));
        for name in lists
            .into_iter()
            .filter(|name| name.ends_with(".list") && wanted(name))
        {
            let Some(package) = status.package(&name) else {
                continue;
            };
            let Some(list) = text(&database.join("info").join(&name)) else {
                continue;
            };
            self.add(package, Path::new("/"), debian::read_dpkg_list(&list));
        }
    }
}
