//! The live view of a model: on which screen one sees who got which toolkit, and why.
//!
//! The view knows no source and no file. It is handed a trace's header, a channel of events ([`Input`]) and a few
//! things it may ask for ([`Commands`]), and gives back how it was left ([`Outcome`]):
//!
//! ```text
//! Input ──► worker: folds ─────────► Msg ─┐
//! keys, mouse, size ────────────────► Msg ─┴─► App::update ──► Effect (copy, write, send keys, end)
//!                                                  │
//!                                              draw::draw, at most 30 times a second, only what is seen
//! ```
//!
//! [`App::update`] and [`draw::draw`] are pure, so that every screen can be tested by pressing keys.

pub mod app;
pub mod batch;
pub mod clock;
pub mod copy;
pub mod draw;
pub mod filter;
pub mod keys;
pub mod layout;
pub mod list;
pub mod overlay;
pub mod settings;
pub mod snapshot;
pub mod store;
pub mod subject;
pub mod summary;
mod terminal;
pub mod text;
pub mod theme;
pub mod view;
pub mod why;
pub mod worker;

pub use app::{App, Export, Mode, Outcome, Setup};
pub use batch::Batch;
pub use settings::{Settings, SettingsError};
pub use terminal::{Commands, Left, TuiError, run};
pub use worker::Input;
