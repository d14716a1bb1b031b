//! Whatever a trace says, folding and reporting it does not panic: events out of order, of processes nobody started, with
//! empty and contradictory fields.

use jittrace_model::{
    Event, Model,
    log::Header,
    report::{markdown, text},
};
use proptest::prelude::*;

/// Bodies of every kind, some with the least they may have.
const BODIES: &[&str] = &[
    r#""kind":"process-start""#,
    r#""kind":"process-start","ppid":PID,"forked":true"#,
    r#""kind":"process-start","ppid":PID,"env_inherited":true,"exe":"/bin/sh","argv":["sh","/x/nvcc","--version"]"#,
    r#""kind":"process-start","ppid":PID,"exe":"/c/bin/nvcc","argv":["nvcc","-arch=sm_120f","-o","k.o","k.cu"],"cwd":"/w","env":{"PATH":"/c/bin:","CUDA_HOME":"/c/"}"#,
    r#""kind":"process-start","ppid":PID,"exe":"/usr/bin/python3","argv":["python3","-m"],"env":{"PATH":""}"#,
    r#""kind":"process-exit","code":0"#,
    r#""kind":"process-exit","signal":9"#,
    r#""kind":"process-exit""#,
    r#""kind":"exec","path":"ninja","child":PID"#,
    r#""kind":"exec","path":"/c/bin/nvcc","call":"execve","argv":[],"python":[{"file":"","function":""}]"#,
    r#""kind":"exec","path":"","call":"system","argv":["sh","-c","x"]"#,
    r#""kind":"exec-failed","path":"/c/bin/nvcc","errno":2"#,
    r#""kind":"library-request","name":"libcudart.so.13""#,
    r#""kind":"library-loaded","path":"/c/lib64/libcudart.so.12","request":ID"#,
    r#""kind":"library-loaded","path":"","rule":"invented""#,
    r#""kind":"library-failed","requested":"libcuda.so.1","error":"libcuda.so.1: cannot open shared object file","request":ID"#,
    r#""kind":"library-failed","requested":"x.so","missing":"libcudart.so.12","missing_for":"x.so""#,
    r#""kind":"library-unloaded","path":"/c/lib64/libcudart.so.12""#,
    r#""kind":"call","function":"cuInit","result":34"#,
    r#""kind":"call","function":"cuDriverGetVersion","result":0,"value":"13000""#,
    r#""kind":"call","function":"cuModuleLoadData","result":222,"image":{"kind":"ptx","ptx_version":"9.9"}"#,
    r#""kind":"call","function":"cuDeviceGetAttribute","result":0,"value":"-1","args":["75"]"#,
    r#""kind":"message","stream":"stderr","text":"nvcc fatal   : Unsupported gpu architecture 'compute_120'","pattern":"x""#,
    r#""kind":"message","stream":"pipe","text":"SM 12.x requires CUDA >= 12.9.","pattern":"requires-cuda""#,
    r#""kind":"file","op":"create","path":"/w/cache/build.ninja","old_text":"cuda_home = /c\n""#,
    r#""kind":"file","op":"lock-wait","path":"/w/cache/lock""#,
    r#""kind":"file","op":"open","path":"/c/include/cuda.h","errno":2"#,
    r#""kind":"python-stack","of":ID,"python":[]"#,
    r#""kind":"fact","about":"file","path":"/c/bin/nvcc","part":"nvcc","version":"12.4.131","toolkit":"/c""#,
    r#""kind":"fact","about":"file","path":"/c/lib64/libcudart.so.12","part":"cudart","version":"not a version""#,
    r#""kind":"fact","about":"distribution","name":"torch","version":"2.11.0","built_for":"13.0""#,
    r#""kind":"fact","about":"toolkit","root":"/c","parts":{"nvcc":"/c/bin/nvcc"}"#,
    r#""kind":"fact","about":"gpu","index":0,"compute_capability":"12.0""#,
    r#""kind":"fact","about":"driver","version":"580","cuda":"x""#,
    r#""kind":"fact","about":"cache","path":"/w/cache/x.so","directory":"/w/cache","owner":"flashinfer","built_with":"12""#,
    r#""kind":"fact","about":"tool-output","path":"/c/bin/nvcc","text":"release 12.4, V12.4.131""#,
    r#""kind":"fact","about":"something new""#,
    r#""kind":"lost","what":"records","count":18446744073709551615"#,
    r#""kind":"note","text":"""#,
    r#""kind":"unheard-of""#,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_list_of_events_makes_a_report_panic(
        events in prop::collection::vec((0..BODIES.len(), 0_u32..5, 0_u32..5, 0_u64..8, any::<u32>()), 0..60)
    ) {
        let mut model = Model::new(Header::default());
        for (id, (body, pid, other, back, t)) in events.into_iter().enumerate() {
            let body = BODIES[body]
                .replace("PID", &other.to_string())
                .replace("ID", &(id as u64).saturating_sub(back).to_string());
            let line = format!(r#"{{"id":{},"t":{t},"pid":{pid},"tid":{pid},"source":"preload",{body}}}"#, id + 1);
            match Event::from_line(&line) {
                Ok(event) => model.apply(event),
                Err(error) => prop_assert!(false, "{error}: {line}"),
            }
        }
        let report = model.report();
        let _ = text::render(&report, text::Style::default());
        let _ = markdown::render(&report);
        let json = serde_json::to_string(&report).unwrap();
        let _: jittrace_model::report::Report = serde_json::from_str(&json).unwrap();
    }
}
