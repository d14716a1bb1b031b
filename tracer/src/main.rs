//! `jittrace`: the command.
fn main() {}
