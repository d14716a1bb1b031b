//! What following a program costs. Run it by hand on a quiet machine: `cargo test -p jittrace-tests --test shim_cost -- --ignored --nocapture`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use jittrace_tests::{lab::Lab, shim::SHIM};
use std::time::{Duration, Instant};

/// Median of 200 interleaved pairs, as a shared machine's load changes from second to second.
#[test]
#[ignore = "measures time, which a loaded machine cannot"]
fn a_traced_true_costs_at_most_a_hundred_microseconds_more() {
    let lab = Lab::new();
    let session = lab.session();
    let run = |traced: bool| {
        let mut command = lab.command("/bin/true");
        if traced {
            command
                .env("LD_PRELOAD", SHIM)
                .env(jittrace_wire::SESSION_VARIABLE, &session);
        }
        let begun = Instant::now();
        assert!(command.status().unwrap().success());
        begun.elapsed()
    };
    let mut pairs: Vec<(Duration, Duration)> = (0..200).map(|_| (run(false), run(true))).collect();
    pairs.sort_unstable_by_key(|(bare, traced)| traced.saturating_sub(*bare));
    let (bare, traced) = pairs[pairs.len() / 2];
    let more = traced.saturating_sub(bare);
    println!("bare {bare:?}, traced {more:?} more");
    assert!(more <= Duration::from_micros(100), "{more:?}");
}
