//! How grave a failure is that was seen: by what came of it, and not by the status that the program ended with alone.

use jittrace_model::{
    event::{Frame, Image, Rule},
    report::Severity,
};

mod findings;

use findings::{PYTHON, Trace};

/// What a run is expected to be told.
enum Told {
    Grave(Severity),
    Note,
}

use Told::{Grave, Note};

#[track_caller]
fn judge(trace: &Trace, id: &str, told: &Told, what: &str) {
    match told {
        Grave(severity) => {
            let first = trace.findings().into_iter().next();
            let first = first.unwrap_or_else(|| panic!("{what}: nothing was found"));
            assert_eq!(
                (first.id.as_str(), first.severity),
                (id, *severity),
                "{what}: {first:#?}"
            );
        }
        Note => {
            let findings = trace.findings();
            assert!(
                findings.iter().all(|f| f.severity == Severity::Note)
                    && findings.iter().any(|f| f.id == id),
                "{what}: {findings:#?}"
            );
        }
    }
}

const OLD_DRIVER: &str = "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 12040).";

/// A process with a runtime of CUDA 13 and a driver of 12.4.
fn old_driver(env: &[(&str, &str)], arguments: &[&str]) -> Trace {
    let mut argv = vec!["python3", "/w/app.py"];
    argv.extend(arguments);
    let mut trace = Trace::default();
    trace.process(PYTHON, 1, "/usr/bin/python3", &argv, env);
    trace.is("/t/libcudart.so.13", "cudart", "13.0.96");
    trace.loaded(PYTHON, "/t/libcudart.so.13", Rule::Rpath, "", |_| {});
    trace.driver_says("12040");
    trace
}

fn device_count(trace: &mut Trace, object: &str, result: i64, value: &str) {
    trace.call(PYTHON, "cudaGetDeviceCount", result, |c| {
        c.object = Some(object.to_owned());
        c.value = Some(value.to_owned());
    });
}

#[test]
fn a_driver_that_refused_is_told_by_what_came_of_it() {
    type Then = fn(&mut Trace);
    let ends_well: Then = |t| {
        t.exit(PYTHON, 0);
    };
    let fails: Then = |t| {
        t.exit(PYTHON, 1);
    };
    let runs_on: Then = |_| {};
    let another_runtime_works: Then = |t| {
        t.is("/t/libcudart.so.12", "cudart", "12.4.127");
        t.loaded(PYTHON, "/t/libcudart.so.12", Rule::AbsolutePath, "", |_| {});
        device_count(t, "/t/libcudart.so.12", 0, "1");
        t.exit(PYTHON, 0);
    };
    let another_finds_no_gpu: Then = |t| {
        device_count(t, "/t/libcudart.so.12", 0, "0");
        t.exit(PYTHON, 0);
    };
    for (what, env, arguments, then, told) in [
        ("it failed", &[][..], &[][..], fails, Grave(Severity::Error)),
        (
            "printed, ended well",
            &[],
            &[],
            ends_well,
            Grave(Severity::Warning),
        ),
        ("runs on", &[], &[], runs_on, Grave(Severity::Warning)),
        (
            "no GPU is wanted",
            &[("CUDA_VISIBLE_DEVICES", "")],
            &[],
            ends_well,
            Note,
        ),
        (
            "no GPU is wanted, -1",
            &[("CUDA_VISIBLE_DEVICES", "-1")],
            &[],
            ends_well,
            Note,
        ),
        (
            "a GPU is named",
            &[("CUDA_VISIBLE_DEVICES", "0")],
            &[],
            ends_well,
            Grave(Severity::Warning),
        ),
        (
            "no GPU is wanted, and another fault",
            &[("CUDA_VISIBLE_DEVICES", "")],
            &[],
            fails,
            Note,
        ),
        ("on the CPU", &[], &["--device", "cpu"], ends_well, Note),
        (
            "on the CPU, one word",
            &[],
            &["--device=cpu"],
            runs_on,
            Note,
        ),
        (
            "another option",
            &[],
            &["--offload", "cpu"],
            ends_well,
            Grave(Severity::Warning),
        ),
        (
            "on the GPU",
            &[],
            &["--device", "cuda"],
            ends_well,
            Grave(Severity::Warning),
        ),
        (
            "JAX on the CPU",
            &[("JAX_PLATFORMS", "cpu")],
            &[],
            ends_well,
            Note,
        ),
        (
            "another runtime reaches it",
            &[],
            &[],
            another_runtime_works,
            Note,
        ),
        (
            "another runtime finds none",
            &[],
            &[],
            another_finds_no_gpu,
            Grave(Severity::Warning),
        ),
    ] {
        let mut trace = old_driver(env, arguments);
        device_count(&mut trace, "/t/libcudart.so.13", 35, "-1");
        then(&mut trace);
        judge(&trace, "driver-too-old", &told, what);
    }
    // The words alone, as torch puts them: the releases agree with them.
    for (what, env, code, told) in [
        ("said and failed", &[][..], 1, Grave(Severity::Error)),
        ("said and went on", &[], 0, Grave(Severity::Warning)),
        ("said on the CPU", &[("CUDA_VISIBLE_DEVICES", "")], 0, Note),
    ] {
        let mut trace = old_driver(env, &[]);
        trace.says(PYTHON, OLD_DRIVER);
        trace.exit(PYTHON, code);
        judge(&trace, "driver-too-old", &told, what);
    }
    // A machine without a GPU: 100 says nothing of a toolkit.
    let mut none = old_driver(&[], &[]);
    device_count(&mut none, "/t/libcudart.so.13", 100, "0");
    none.exit(PYTHON, 0);
    none.silent();
}

#[test]
fn a_launcher_that_tries_one_runtime_after_the_other_in_children() {
    let mut trace = Trace::python(&[]);
    trace.driver_says("12040");
    for (pid, object, version, result, value) in [
        (201, "/t/cuda_v13/libcudart.so.13", "13.0.96", 35, "-1"),
        (202, "/t/cuda_v12/libcudart.so.12", "12.4.127", 0, "1"),
    ] {
        trace.process(pid, PYTHON, "/t/runner", &["runner"], &[]);
        trace.is(object, "cudart", version);
        trace.loaded(pid, object, Rule::Runpath, "", |_| {});
        trace.call(pid, "cudaGetDeviceCount", result, |c| {
            c.object = Some(object.to_owned());
            c.value = Some(value.to_owned());
        });
        trace.exit(pid, 0);
    }
    trace.exit(PYTHON, 0);
    judge(&trace, "driver-too-old", &Note, "the second runtime works");
}

/// A load of a module by `function` at `line`, called from `get`.
fn load(trace: &mut Trace, result: i64, image: Image, lines: (u32, u32)) {
    let frame = |function: &str, line| Frame {
        file: "/v/jit.py".to_owned(),
        line,
        function: function.to_owned(),
        ..Frame::default()
    };
    trace.call(PYTHON, "cuModuleLoadData", result, |c| {
        c.image = Some(image);
        c.python = vec![frame("load", lines.0), frame("get", lines.1)];
    });
}

fn ptx(isa: &str) -> Image {
    Image {
        kind: "ptx".into(),
        ptx_version: Some(isa.into()),
        target: Some("sm_80".into()),
        ..Image::default()
    }
}

fn cubin(file: &str) -> Image {
    Image {
        kind: "cubin".into(),
        archs: vec!["sm_90".into()],
        file: Some(file.into()),
        ..Image::default()
    }
}

#[test]
fn a_refused_image_is_an_error_unless_it_was_tried_again_with_success() {
    // (error, the image, the next image and the line that loads it, its result)
    for (what, id, first, code, next, told) in [
        (
            "caught",
            "ptx-too-new-for-driver",
            ptx("9.2"),
            222,
            None,
            Grave(Severity::Error),
        ),
        (
            "caught",
            "no-kernel-image",
            cubin("/k.cubin"),
            209,
            None,
            Grave(Severity::Error),
        ),
        (
            "a loop over modules",
            "ptx-too-new-for-driver",
            ptx("9.2"),
            222,
            Some((ptx("9.0"), 20, 0)),
            Grave(Severity::Error),
        ),
        (
            "PTX after the cubin",
            "no-kernel-image",
            cubin("/k.cubin"),
            209,
            Some((ptx("9.0"), 24, 0)),
            Note,
        ),
        (
            "the PTX fails too",
            "no-kernel-image",
            cubin("/k.cubin"),
            209,
            Some((ptx("9.0"), 24, 209)),
            Grave(Severity::Error),
        ),
        (
            "built anew",
            "no-kernel-image",
            cubin("/k.cubin"),
            209,
            Some((cubin("/k.cubin"), 20, 0)),
            Note,
        ),
    ] {
        let mut trace = Trace::python(&[]);
        trace.driver_says("13000");
        trace.capability(12, 0);
        load(&mut trace, code, first, (5, 20));
        if let Some((image, line, result)) = next {
            load(&mut trace, result, image, (5, line));
        }
        trace.exit(PYTHON, 0);
        judge(&trace, id, &told, what);
    }
}

#[test]
fn nvrtc_that_is_asked_what_it_can_do() {
    let compile = |trace: &mut Trace, arch: &str, result: i64| {
        trace.call(PYTHON, "nvrtcCompileProgram", result, |c| {
            c.object = Some("/t/libnvrtc.so.12".to_owned());
            c.args = vec![format!("--gpu-architecture={arch}")];
        });
    };
    for (what, then, code, told) in [
        ("nothing else", None, 0, Grave(Severity::Error)),
        ("an older architecture", Some("compute_90"), 0, Note),
        (
            "an older one, and it failed",
            Some("compute_90"),
            1,
            Grave(Severity::Error),
        ),
    ] {
        let mut trace = Trace::python(&[]);
        trace.is("/t/libnvrtc.so.12", "nvrtc", "12.4.127");
        trace.loaded(PYTHON, "/t/libnvrtc.so.12", Rule::Rpath, "", |_| {});
        compile(&mut trace, "compute_120", 5);
        if let Some(arch) = then {
            compile(&mut trace, arch, 0);
        }
        trace.exit(PYTHON, code);
        judge(&trace, "arch-unsupported-by-nvrtc", &told, what);
    }
}

#[test]
fn a_stub_where_no_gpu_is_wanted() {
    for (env, told) in [
        (&[][..], Grave(Severity::Error)),
        (&[("CUDA_VISIBLE_DEVICES", "")], Note),
    ] {
        let mut trace = Trace::python(env);
        trace.is_with("/c/stubs/libcuda.so", "libcuda", "", |f| {
            f.variant = Some("stub".to_owned());
        });
        trace.loaded(
            PYTHON,
            "/c/stubs/libcuda.so",
            Rule::LdLibraryPath,
            "",
            |_| {},
        );
        trace.call(PYTHON, "cuInit", 34, |c| {
            c.object = Some("/c/stubs/libcuda.so".to_owned());
        });
        trace.exit(PYTHON, 0);
        judge(&trace, "libcuda-stub", &told, "a stub");
    }
}

#[test]
fn an_empty_list_of_architectures_in_a_program_that_caught_it() {
    let said = |trace: &mut Trace| {
        trace.says(
            PYTHON,
            "Failed to get device capability: SM 12.x requires CUDA >= 12.9.",
        );
        trace.says(
            PYTHON,
            "FAILED RuntimeError FlashInfer requires GPUs with sm75 or higher",
        );
        trace.exit(PYTHON, 0);
    };
    // An nvcc was asked and is too old: both are told, the one as what follows from the other.
    let mut caught = Trace::python(&[]);
    caught.capability(12, 0);
    caught.is("/opt/cuda-12.4/bin/nvcc", "nvcc", "12.4.131");
    caught.tool(101, PYTHON, "/opt/cuda-12.4/bin/nvcc", &["--version"], 0);
    said(&mut caught);
    judge(
        &caught,
        "nvcc-older-than-required",
        &Grave(Severity::Error),
        "caught",
    );
    let findings = caught.findings();
    let empty = findings.iter().find(|f| f.id == "arch-list-empty");
    let empty = empty.unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!(
        (empty.severity, empty.consequence_of.as_deref()),
        (Severity::Error, Some("nvcc-older-than-required"))
    );
    // The same words, and nothing that agrees with them: a log that quotes.
    let mut quoted = Trace::python(&[]);
    said(&mut quoted);
    quoted.silent();
}
