//! Which processes are there already: a process and all its descendants.

use std::fs;

/// The parent of every process that `/proc` shows, as (pid, parent).
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parent_in(&stat)?))
        })
        .collect()
}

/// The fourth field of `/proc/PID/stat`; the second is the name in parentheses, which may hold anything.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Calls `follow` for `root` and each of its descendants, parents first, until a whole look at `/proc` finds nobody new:
/// whoever is forked after its parent was followed is followed by the kernel, whoever was forked before is seen here.
pub(crate) fn each_descendant<E>(
    root: u32,
    mut follow: impl FnMut(u32) -> Result<(), E>,
) -> Result<Vec<u32>, E> {
    follow(root)?;
    let mut followed = vec![root];
    loop {
        let parents = parents();
        let before = followed.len();
        let mut at = 0;
        while let Some(parent) = followed.get(at).copied() {
            for (pid, _) in parents
                .iter()
                .filter(|(pid, of)| *of == parent && !followed.contains(pid))
                .copied()
                .collect::<Vec<_>>()
            {
                follow(pid)?;
                followed.push(pid);
            }
            at += 1;
        }
        if followed.len() == before {
            return Ok(followed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_read_behind_the_name() {
        let cases = [
            ("12 (sh) S 7 12 12 0", Some(7)),
            ("12 (a) b) S 1 (x) R 8 12", Some(8)),
            ("12 (tail", None),
            ("", None),
        ];
        for (stat, parent) in cases {
            assert_eq!(parent_in(stat), parent, "{stat}");
        }
    }

    #[test]
    fn a_child_is_found() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let mut seen = Vec::new();
        let all = each_descendant(std::process::id(), |pid| {
            seen.push(pid);
            Ok::<(), ()>(())
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(all.unwrap().contains(&child.id()));
        assert_eq!(seen.first(), Some(&std::process::id()));
    }
}
