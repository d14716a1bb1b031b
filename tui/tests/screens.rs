//! Every view on recorded traces, at three sizes, as a person sees it.

mod common;

use common::{TRACES, open, press, text};
use jittrace_tui::view::View;

fn screens(size: (u16, u16)) {
    for trace in TRACES {
        let mut out = String::new();
        for view in View::ALL {
            let mut app = open(trace, size.0, size.1);
            press(&mut app, &(view.index() + 1).to_string());
            out.push_str(&format!("──── {}\n{}", view.title(), text(&app)));
            if matches!(
                view,
                View::Resolution | View::Builds | View::Libraries | View::Events
            ) {
                press(&mut app, "Enter");
                out.push_str(&format!("──── {}, Enter\n{}", view.title(), text(&app)));
            }
        }
        insta::assert_snapshot!(format!("{trace}-{}x{}", size.0, size.1), out);
    }
}

#[test]
fn small() {
    screens((80, 24));
}

#[test]
fn middling() {
    screens((120, 40));
}

#[test]
fn large() {
    screens((200, 60));
}
