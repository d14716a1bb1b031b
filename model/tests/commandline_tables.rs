//! Command lines as real programs give them, what tools answer, and what their messages mean.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use jittrace_model::commandline::{
    Message, Purpose, Tool, ToolCommand, meanings, parse, read_arch_list, read_version,
    shell_commands, tool_of,
};
use jittrace_model::toolkit::{Part, Version};
use proptest::prelude::*;

fn command(line: &str) -> ToolCommand {
    let words = shell_commands(line).remove(0).words;
    parse(&words)
}

fn archs(command: &ToolCommand) -> String {
    command
        .archs
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn purposes_and_architectures() {
    use Purpose::{Build, Compile, Link, ListArchs, Other, Preprocess, Search, VersionProbe};
    let rows = [
        (
            "/usr/local/cuda/bin/nvcc --version",
            Tool::Nvcc,
            VersionProbe,
            "",
        ),
        ("nvcc -V", Tool::Nvcc, VersionProbe, ""),
        ("nvcc --list-gpu-arch", Tool::Nvcc, ListArchs, ""),
        ("nvcc", Tool::Nvcc, Other, ""),
        (
            "nvcc -arch=sm_90a -out=k.cubin k.cu",
            Tool::Nvcc,
            Compile,
            "sm_90a",
        ),
        (
            "/c/bin/nvcc --generate-dependencies-with-compile --dependency-output x.o.d -gencode=arch=compute_120f,code=sm_120f -std=c++17 --threads=1 -c x.cu -o x.o",
            Tool::Nvcc,
            Compile,
            "compute_120f sm_120f",
        ),
        (
            "nvcc -gencode arch=compute_80,code=[sm_80,compute_80] --shared k.cu -o k.so",
            Tool::Nvcc,
            Build,
            "compute_80 sm_80",
        ),
        (
            "nvcc -dlink a.o b.o -o link.o -arch sm_90",
            Tool::Nvcc,
            Link,
            "sm_90",
        ),
        ("nvcc a.o b.o -o prog", Tool::Nvcc, Link, ""),
        ("nvcc -E k.cu", Tool::Nvcc, Preprocess, ""),
        ("nvcc --dryrun -c k.cu", Tool::Nvcc, Other, ""),
        (
            "site/triton/backends/nvidia/bin/ptxas --version",
            Tool::Ptxas,
            VersionProbe,
            "",
        ),
        (
            "ptxas --gpu-name=sm_121a -out=k.cubin k.ptx",
            Tool::Ptxas,
            Compile,
            "sm_121a",
        ),
        (
            "ptxas-blackwell -lineinfo -v --gpu-name=sm_120a /tmp/x.ptx -o /tmp/x.o",
            Tool::Ptxas,
            Compile,
            "sm_120a",
        ),
        (
            "ptxas -arch=sm_120f -m64 /tmp/a.ptx -o /tmp/a.cubin",
            Tool::Ptxas,
            Compile,
            "sm_120f",
        ),
        (
            "ptxas -arch=compute_120 -m64 /tmp/a.ptx",
            Tool::Ptxas,
            Compile,
            "compute_120",
        ),
        (
            "cicc --c++17 --orig_src_file_name k.cu -arch compute_120f -m64 /tmp/k.ii -o /tmp/k.ptx",
            Tool::Cicc,
            Compile,
            "compute_120f",
        ),
        (
            "fatbinary --create=x.fatbin -64 --image3=kind=elf,sm=120f,file=x.cubin --image3=kind=ptx,sm=120,file=x.ptx",
            Tool::Fatbinary,
            Other,
            "",
        ),
        (
            "nvlink -arch=sm_90 a.o -o a.cubin",
            Tool::Nvlink,
            Link,
            "sm_90",
        ),
        (
            "c++ -MMD -MF x.d -fPIC -I/usr/include -c x.cpp -o x.o",
            Tool::HostCompiler,
            Compile,
            "",
        ),
        (
            "c++ a.o b.o -shared -L/c/lib64 -lcudart -o x.so",
            Tool::HostCompiler,
            Link,
            "",
        ),
        (
            "c++ -dumpfullversion -dumpversion",
            Tool::HostCompiler,
            VersionProbe,
            "",
        ),
        ("gcc -v", Tool::HostCompiler, VersionProbe, ""),
        ("gcc -v -c x.c", Tool::HostCompiler, Compile, ""),
        ("ninja --version", Tool::Ninja, VersionProbe, ""),
        ("ninja -v -C /w -f /w/build.ninja", Tool::Ninja, Build, ""),
        ("which nvcc", Tool::Which, Search, ""),
        (
            "ccache nvcc -c k.cu -arch=sm_90",
            Tool::Launcher,
            Compile,
            "",
        ),
    ];
    for (line, tool, purpose, wanted) in rows {
        let command = command(line);
        if tool == Tool::Fatbinary {
            assert_eq!(
                (archs(&command).as_str(), command.purpose),
                ("sm_120f sm_120", Link),
                "{line}"
            );
            continue;
        }
        assert_eq!(
            (command.tool, command.purpose),
            (tool, purpose),
            "{line}\n{command:#?}"
        );
        assert_eq!(archs(&command), wanted, "{line}");
    }
}

#[test]
fn fields_of_a_compile() {
    let command = command(
        "/c/bin/nvcc -ccbin /usr/bin/g++-12 -DTOKEN=secret -D __X__ -I/a -I /b -isystem /c/include -L/c/lib64 -L/c/lib64/stubs -lcudart -lineinfo \
         -Xcompiler -fPIC --compiler-options '-Wall -O2' @more.rsp --options-file opts.txt -arch=native -c k.cu -o k.o",
    );
    assert_eq!(command.ccbin.as_deref(), Some("/usr/bin/g++-12"));
    assert_eq!(command.defines, ["TOKEN", "__X__"]);
    assert_eq!(command.includes, ["/a", "/b", "/c/include"]);
    assert_eq!(command.library_directories, ["/c/lib64", "/c/lib64/stubs"]);
    assert_eq!(command.libraries, ["cudart"]);
    assert_eq!(
        (command.sources.as_slice(), command.outputs.as_slice()),
        (&["k.cu".to_owned()][..], &["k.o".to_owned()][..])
    );
    assert_eq!(command.response_files, ["more.rsp", "opts.txt"]);
    assert_eq!(command.arch_words, ["native"]);
    assert!(!format!("{command:?}").contains("secret"));
    assert!(command.compiles_for_gpu());
}

#[test]
fn shells_and_launchers_are_taken_apart() {
    let shell = parse(&[
        "/bin/sh",
        "-c",
        ":/c/bin/nvcc -arch=sm_89 -out=k.cubin k.cu",
    ]);
    let leaves = shell.leaves();
    assert_eq!(
        (leaves.len(), leaves[0].tool, leaves[0].program.as_str()),
        (1, Tool::Nvcc, ":/c/bin/nvcc")
    );
    assert_eq!(shell.purpose, Purpose::Compile);

    let nested = parse(&[
        "sh",
        "-c",
        "cd '/tmp/a b' && CUDA_HOME=/c PATH=\"/x:$PATH\" \"/c d/nvcc\" --version 2>&1 | tail -1; command -v ninja",
    ]);
    assert_eq!(nested.directory.as_deref(), Some("/tmp/a b"));
    let tools: Vec<(Tool, Purpose)> = nested
        .leaves()
        .iter()
        .map(|leaf| (leaf.tool, leaf.purpose))
        .collect();
    assert_eq!(
        tools,
        [
            (Tool::Nvcc, Purpose::VersionProbe),
            (Tool::Other, Purpose::Other),
            (Tool::Which, Purpose::Search)
        ]
    );
    assert_eq!(nested.steps[0].program, "/c d/nvcc");
    assert_eq!(nested.steps[2].asks_for, ["ninja"]);

    let launched = parse(&["env", "CUDA_HOME=/c", "ccache", "/c/bin/nvcc", "-c", "k.cu"]);
    assert_eq!(launched.leaves()[0].program, "/c/bin/nvcc");
    let module = parse(&["python3", "-m", "ninja", "-C", "/w"]);
    assert_eq!(
        (
            module.leaves()[0].tool,
            module.leaves()[0].directory.as_deref()
        ),
        (Tool::Ninja, Some("/w"))
    );
    let cicc = parse(&[
        "sh",
        "-c",
        "\"$CICC_PATH/cicc\" --c++17 -arch compute_120f k.ii -o k.ptx",
    ]);
    assert_eq!(cicc.leaves()[0].tool, Tool::Cicc);
    assert_eq!(parse(&[] as &[&str]).tool, Tool::Other);
    assert_eq!(
        tool_of("/usr/bin/x86_64-linux-gnu-gcc-12"),
        Tool::HostCompiler
    );
}

#[test]
fn answers_of_probes() {
    let text = "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2025 NVIDIA Corporation\nBuilt on Wed_Aug_20\n\
        Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/compiler.36424714_0\n";
    let answer = read_version(text).unwrap();
    assert_eq!(
        (answer.tool, answer.version),
        (Some(Part::Nvcc), Version::exact(13, 0, 88))
    );
    assert_eq!(
        answer.build.as_deref(),
        Some("cuda_13.0.r13.0/compiler.36424714_0")
    );
    let fake =
        read_version("ptxas: fake NVIDIA tool\nCuda compilation tools, release 12.8, V12.8.0\n")
            .unwrap();
    assert_eq!(
        (fake.tool, fake.version),
        (Some(Part::Ptxas), Version::exact(12, 8, 0))
    );
    assert_eq!(read_version("gcc (Debian) 12.2.0"), None);
    let list = read_arch_list("compute_75\ncompute_120\nnoise\n");
    assert_eq!(
        list.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["compute_75", "compute_120"]
    );
}

#[test]
fn messages_and_their_values() {
    let text = "\
nvcc fatal   : Unsupported gpu architecture 'compute_120f'
nvcc fatal   : Value 'sm_120' is not defined for option 'gpu-architecture'
nvcc fatal   : Value 'sm_89' is not defined (fake 12.8)
ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'
nvcc fatal   : Unknown option '-static-global-template-stub=false'
ptxas k.ptx, line 1; fatal   : Unsupported .version 8.7; current version is '8.4'
ptxas x.ptx, line 9; error   : PTX .version 8.6 does not support .target sm_120
Failed to get device capability: SM 12.x requires CUDA >= 12.9.
RuntimeError: SM 120 requires CUDA >= 12.8
please use at least NVCC 12.9, needs
ImportError: libcudart.so.13: cannot open shared object file: No such file or directory
/x/app: error while loading shared libraries: libnvrtc.so.12: cannot open shared object file: No such file or directory
OSError: /s/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12
CUDA driver version is insufficient for CUDA runtime version
The NVIDIA driver on your system is too old (found version 12040).
CUDA error: no kernel image is available for execution on the device
the provided PTX was compiled with an unsupported toolchain.
RuntimeError: FlashInfer requires GPUs with sm75 or higher
error: CUDA compiler (13030) and CUDA toolkit headers (13000) are incompatible
#error \"CUDA compiler and CUDA toolkit headers are incompatible, please check your include paths\"
The detected CUDA version (12.8) mismatches the version that was used to compile PyTorch (13.0).
sampling.cu:3:10: fatal error: curand_kernel.h: No such file or directory
FileNotFoundError: [Errno 2] No such file or directory: 'ninja'
sh: 1: :/c/bin/nvcc: not found
/bin/sh: line 1: /c/bin/nvcc: No such file or directory
bash: cuobjdump: command not found
RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist
#error -- unsupported GNU version! gcc versions later than 13 are not supported!
nvrtc: error: failed to open libnvrtc-builtins.so.13.0.
/usr/bin/ld: cannot find -lcudart: No such file or directory
RuntimeError: Multiple libcudart libraries found: libcudart.so.12 and libcudart.so.13
CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH
FileNotFoundError: [Errno 2] No such file or directory: '/data/model.safetensors'
everything is fine";
    let found: Vec<String> = text
        .lines()
        .map(|line| {
            meanings(line)
                .iter()
                .map(|meaning| serde_json::to_string(meaning).unwrap())
                .collect::<String>()
        })
        .collect();
    insta::assert_snapshot!(found.join("\n"));
    assert_eq!(meanings("").len(), 0);
    assert!(matches!(
        &meanings(text)[0],
        Message::ArchUnsupported {
            tool: Some(Part::Nvcc),
            ..
        }
    ));
}

proptest! {
    #[test]
    fn no_command_panics(words in proptest::collection::vec(".{0,30}", 0..12), text in "[\\PC\n]{0,120}") {
        let _ = parse(&words);
        let _ = parse(&["sh", "-c", text.as_str()]);
        let _ = meanings(&text);
        let _ = (read_version(&text), read_arch_list(&text));
        for tool in ["nvcc", "ptxas", "c++", "ninja", "fatbinary", "which"] {
            let mut argv = vec![tool.to_owned()];
            argv.extend(words.iter().cloned());
            let _ = parse(&argv);
        }
    }

    #[test]
    fn quoted_words_come_back(words in proptest::collection::vec("[a-zA-Z0-9 /$\"\\\\&|;=]{1,12}", 1..6)) {
        let text = std::iter::once("run".to_owned()).chain(words.iter().map(|word| format!("'{word}'"))).collect::<Vec<_>>().join(" ");
        let commands = shell_commands(&text);
        prop_assert_eq!(commands.len(), 1);
        prop_assert_eq!(&commands[0].words[1..], words.as_slice());
    }
}
