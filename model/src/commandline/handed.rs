//! Programs that hand work to a process which is no child of theirs: a compiler cache's server, a container's daemon, a
//! build server. What is done there is not in a trace that follows children.

/// What the collector's note is about that names the process on the other side.
pub const HANDED_OVER: &str = "handed-over";

/// Work that a command line hands over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    /// The work: the command line as the other side gets it.
    pub work: Vec<String>,
    /// Names of programs that may be the other side.
    pub servers: &'static [&'static str],
}

/// A program that hands work over, and how to find the work in its arguments.
struct Client {
    names: &'static [&'static str],
    servers: &'static [&'static str],
    work: fn(&[String]) -> Option<Vec<String>>,
}

const CLIENTS: &[Client] = &[
    Client {
        names: &["sccache"],
        servers: &["sccache"],
        work: launched,
    },
    Client {
        names: &["distcc"],
        servers: &["distccd"],
        work: launched,
    },
    Client {
        names: &["icecc", "icerun"],
        servers: &["iceccd"],
        work: launched,
    },
    Client {
        names: &["docker", "podman", "nerdctl"],
        servers: &["dockerd", "containerd", "conmon"],
        work: in_container,
    },
    Client {
        names: &["kubectl"],
        servers: &[],
        work: in_container,
    },
    Client {
        names: &["ssh"],
        servers: &[],
        work: on_host,
    },
    Client {
        names: &["srun"],
        servers: &["slurmd", "slurmstepd"],
        work: after_options,
    },
    Client {
        names: &["systemd-run"],
        servers: &["systemd"],
        work: after_options,
    },
    Client {
        names: &["bazel", "bazelisk", "buck2"],
        servers: &["bazel", "java", "buck2d", "buck2"],
        work: built,
    },
];

/// What a command line hands over; none for a program that does its work itself, and for one that is only asked.
#[must_use]
pub fn handed_over(program: &str, arguments: &[String]) -> Option<Handed> {
    let client = CLIENTS.iter().find(|c| c.names.contains(&program))?;
    let work = (client.work)(arguments)?;
    Some(Handed {
        work,
        servers: client.servers,
    })
}

/// `sccache nvcc -c x.cu`: everything, unless it is an option of the launcher.
fn launched(arguments: &[String]) -> Option<Vec<String>> {
    let first = arguments.first()?;
    (!first.starts_with('-')).then(|| arguments.to_vec())
}

/// `docker exec -it NAME command…`, `docker run … IMAGE command…`.
fn in_container(arguments: &[String]) -> Option<Vec<String>> {
    let verb = arguments
        .iter()
        .position(|a| matches!(a.as_str(), "exec" | "run"))?;
    let rest = arguments.get(verb + 1..)?;
    if let Some(at) = rest.iter().position(|a| a == "--") {
        return non_empty(rest.get(at + 1..)?);
    }
    let mut words = after_options(rest)?;
    if words.is_empty() {
        return None;
    }
    words.remove(0);
    non_empty(&words)
}

/// `ssh host command…`.
fn on_host(arguments: &[String]) -> Option<Vec<String>> {
    let mut words = after_options(arguments)?;
    if words.is_empty() {
        return None;
    }
    words.remove(0);
    non_empty(&words)
}

/// `bazel build //x`.
fn built(arguments: &[String]) -> Option<Vec<String>> {
    arguments
        .iter()
        .any(|a| matches!(a.as_str(), "build" | "test" | "run"))
        .then(|| arguments.to_vec())
}

/// What follows the options. An option's value is taken with it where the option is known to have one.
fn after_options(arguments: &[String]) -> Option<Vec<String>> {
    const WITH_VALUE: &[&str] = &[
        "-u",
        "-w",
        "-e",
        "-v",
        "-n",
        "-c",
        "-p",
        "-i",
        "-l",
        "-o",
        "-F",
        "-N",
        "--user",
        "--workdir",
        "--env",
        "--volume",
        "--name",
        "--gpus",
        "--namespace",
        "--container",
        "--unit",
        "--property",
        "--network",
        "--ipc",
        "--shm-size",
        "--ntasks",
        "--nodes",
    ];
    let mut at = 0;
    while let Some(argument) = arguments.get(at).filter(|a| a.starts_with('-')) {
        at += if WITH_VALUE.contains(&argument.as_str()) {
            2
        } else {
            1
        };
    }
    non_empty(arguments.get(at..)?)
}

fn non_empty(words: &[String]) -> Option<Vec<String>> {
    (!words.is_empty()).then(|| words.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_found_in_each_clients_arguments() {
        for (line, work) in [
            ("sccache nvcc -c x.cu -o x.o", Some("nvcc -c x.cu -o x.o")),
            ("sccache --show-stats", None),
            (
                "docker exec -it -w /src llm nvcc -c x.cu",
                Some("nvcc -c x.cu"),
            ),
            (
                "docker run --gpus all --rm image python serve.py",
                Some("python serve.py"),
            ),
            ("docker ps", None),
            ("kubectl exec pod -- nvcc --version", Some("nvcc --version")),
            ("ssh -p 22 node1 make -j", Some("make -j")),
            ("ssh node1", None),
            ("srun -n 2 python train.py", Some("python train.py")),
            ("bazel build //x", Some("build //x")),
            ("bazel version", None),
            ("nvcc -c x.cu", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let (program, arguments) = words.split_first().expect("a program");
            let found = handed_over(program, arguments).map(|h| h.work.join(" "));
            assert_eq!(found.as_deref(), work, "{line}");
        }
    }
}
