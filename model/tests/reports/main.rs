//! What is made of a report: text, Markdown, the page, JSON, a diff, a Perfetto trace. All are drawn of the same stories.

mod browser;
mod diff;
mod html;
mod markdown;
mod perfetto;
mod schema;
mod skipping;
mod stories;
mod text;
