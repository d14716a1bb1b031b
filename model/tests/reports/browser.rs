//! The page in a real browser: searched, folded, followed, printed, without scripts, and read by its structure.
//!
//! Skipped, and says so, where no Chromium is installed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use jittrace_model::report::html::{EventSample, render};
use serde_json::Value;

use crate::{skipping, stories};

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |directory| directory.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        skipping::skip(
            "report_browser",
            "no chromium, chromium-browser or google-chrome on PATH",
        );
    }
    found
}

/// The page of the founding story with a build in it.
fn page() -> String {
    let mut sample = EventSample::default();
    stories::events().iter().for_each(|event| sample.add(event));
    let mut report = stories::founding();
    report.builds = stories::healthy().builds;
    render(&report, &sample)
}

/// Loads a page and gives the document as it is after its scripts ran.
fn load(browser: &Path, page: &str, fragment: &str, options: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("page.html");
    std::fs::write(&file, page).unwrap();
    let output = Command::new("timeout")
        .arg("90")
        .arg(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .arg(format!(
            "--user-data-dir={}",
            directory.path().join("profile").display()
        ))
        .args([
            "--virtual-time-budget=8000",
            "--window-size=1280,900",
            "--dump-dom",
        ])
        .args(options)
        .arg(format!("file://{}{fragment}", file.display()))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a script in the page, after the page's own; it hands its findings to `report`.
fn drive(browser: &Path, fragment: &str, script: &str) -> Value {
    let driver = format!(
        r#"<pre id="driven"></pre><script>
addEventListener("load", async () => {{
  const errors = []; addEventListener("error", (e) => errors.push(e.message));
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const result = {{}};
  try {{ {script} }} catch (e) {{ errors.push(String(e)); }}
  result.errors = errors;
  document.getElementById("driven").textContent = btoa(unescape(encodeURIComponent(JSON.stringify(result))));
}});
</script></body>"#
    );
    let document = load(browser, &page().replace("</body>", &driver), fragment, &[]);
    let start = document.find(r#"<pre id="driven">"#).unwrap() + r#"<pre id="driven">"#.len();
    let encoded = &document[start..start + document[start..].find('<').unwrap()];
    let bytes = base64(encoded);
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {encoded}"))
}

fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for letter in text.bytes().filter(|byte| *byte != b'=') {
        let value = LETTERS.iter().position(|known| *known == letter).unwrap();
        bits = bits << 6 | u32::try_from(value).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
        }
    }
    out
}

#[test]
fn events_are_searched_filtered_and_followed() {
    let Some(browser) = browser() else { return };
    let result = drive(
        &browser,
        "",
        r##"
  const $ = (id) => document.getElementById(id);
  result.first = $("found").textContent;
  result.rows = $("events-list").children.length;
  $("more").click();
  result.more = $("events-list").children.length;
  $("search").value = "SM 12.x"; $("search").dispatchEvent(new Event("input")); await wait(300);
  result.searched = $("found").textContent;
  result.marked = document.querySelectorAll("#events-list mark").length;
  $("search").value = "libcudart 13000"; $("search").dispatchEvent(new Event("input")); await wait(300);
  result.words = $("events-list").children.length;
  $("search").value = ""; $("kind").value = "message"; $("kind").dispatchEvent(new Event("change"));
  result.kind = $("events-list").children.length;
  document.querySelector('a[href="#e418"]').click(); await wait(300);
  const target = document.querySelector("#events-list .target");
  result.target = target.id;
  result.open = target.querySelector("details").open;
  await wait(100);
  result.json = JSON.parse(target.querySelector("pre").textContent).kind;
  result.focus = document.activeElement.closest("li").id;
"##,
    );
    assert_eq!(result["errors"], serde_json::json!([]));
    assert_eq!(result["first"], "950 of 950 events match, 100 shown");
    assert_eq!(
        (&result["rows"], &result["more"]),
        (&100.into(), &200.into())
    );
    assert_eq!(result["searched"], "2 of 950 events match, 2 shown");
    assert_eq!((&result["marked"], &result["kind"]), (&2.into(), &2.into()));
    assert_eq!(result["words"], 100);
    assert_eq!(
        (&result["target"], &result["open"], &result["json"]),
        (&"e418".into(), &true.into(), &"message".into())
    );
    assert_eq!(result["focus"], "e418");
}

#[test]
fn sections_fold_the_timeline_opens_and_the_theme_changes() {
    let Some(browser) = browser() else { return };
    let result = drive(
        &browser,
        "#e412",
        r##"
  const all = (what) => [...document.querySelectorAll(what)];
  result.linked = document.querySelector("#events-list .target").id;
  const fold = document.querySelector('[data-fold="resolution"]');
  result.before = all("#resolution details[open]").length;
  fold.click();
  result.unfolded = all("#resolution details:not([open])").length;
  result.label = fold.textContent;
  fold.click();
  result.folded = all("#resolution details[open]").length;
  const row = document.querySelector("#builds summary");
  row.focus(); result.focusable = document.activeElement === row;
  row.click();
  result.argv = row.parentElement.querySelector("pre").textContent;
  const bars = all("#builds .bar").map((bar) => bar.getBoundingClientRect());
  const track = document.querySelector("#builds .track").getBoundingClientRect();
  result.bars = bars.length;
  result.inside = bars.every((bar) => bar.left >= track.left - 1 && bar.right <= track.right + 1 && bar.width >= 3);
  result.nested = bars[1].left >= bars[0].left && bars[1].right <= bars[0].right;
  const ink = getComputedStyle(document.body).color;
  document.getElementById("theme").click();
  result.themed = ink !== getComputedStyle(document.body).color;
"##,
    );
    assert_eq!(result["errors"], serde_json::json!([]));
    assert_eq!(result["linked"], "e412");
    assert_eq!(
        (&result["before"], &result["unfolded"], &result["folded"]),
        (&0.into(), &0.into(), &0.into())
    );
    assert_eq!(result["label"], "Fold all");
    assert_eq!(
        (&result["focusable"], &result["argv"]),
        (&true.into(), &"ninja -v -C page".into())
    );
    assert_eq!(
        (&result["bars"], &result["inside"], &result["nested"]),
        (&7.into(), &true.into(), &true.into())
    );
    assert_eq!(result["themed"], true);
}

#[test]
fn the_structure_is_accessible_in_light_and_dark() {
    let Some(browser) = browser() else { return };
    // What axe calls serious: names, labels, headings in order, landmarks, tables with headers, contrast of text.
    let result = drive(
        &browser,
        "",
        r##"
  const all = (what) => [...document.querySelectorAll(what)];
  for (const d of all("details")) d.open = true;
  result.unnamed = all("button, a, summary, select, input").filter((e) => {
    const label = e.id && document.querySelector(`label[for="${e.id}"]`);
    return !(e.textContent.trim() || e.getAttribute("aria-label") || label);
  }).map((e) => e.outerHTML.slice(0, 80));
  const levels = all("h1,h2,h3,h4").map((h) => Number(h.tagName[1]));
  result.jumps = levels.filter((level, at) => at && level > levels[at - 1] + 1).length;
  result.h1 = levels.filter((level) => level === 1).length;
  result.landmarks = ["header", "nav", "main", "footer"].every((tag) => all(tag).length === 1);
  result.headless = all("table").filter((t) => !t.querySelector("th[scope]")).length;
  result.lang = document.documentElement.lang; result.title = document.title.length > 0;
  result.tabindex = all("[tabindex]").filter((e) => Number(e.getAttribute("tabindex")) > 0).length;
  const channel = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const rgba = (text) => { const n = text.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const light = (c) => .2126 * channel(c[0]) + .7152 * channel(c[1]) + .0722 * channel(c[2]);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
  const faint = () => all("body *").filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && e.getClientRects().length && !e.closest(".skip, script, style, option"))
    .map((e) => { const a = light(rgba(getComputedStyle(e).color)), b = light(behind(e)); return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.className + " " + e.textContent.slice(0, 30)]; })
    .filter(([ratio]) => ratio < 4.5).map(([ratio, text]) => ratio.toFixed(2) + " " + text);
  document.documentElement.dataset.theme = "light"; result.light = faint();
  document.documentElement.dataset.theme = "dark"; result.dark = faint();
  result.wide = document.documentElement.scrollWidth - innerWidth;
"##,
    );
    for list in ["errors", "unnamed", "light", "dark"] {
        assert_eq!(result[list], serde_json::json!([]), "{list}");
    }
    for (what, expected) in [("jumps", 0), ("h1", 1), ("headless", 0), ("tabindex", 0)] {
        assert_eq!(result[what], expected, "{what}");
    }
    assert_eq!(
        (&result["landmarks"], &result["lang"], &result["title"]),
        (&true.into(), &"en".into(), &true.into())
    );
    assert!(
        result["wide"].as_i64().unwrap() <= 0,
        "the page scrolls sideways: {}",
        result["wide"]
    );
}

#[test]
fn without_scripts_the_verdict_and_the_table_are_there() {
    let Some(browser) = browser() else { return };
    let bare = regex::Regex::new(r"(?s)<script.*?</script>")
        .unwrap()
        .replace_all(&page(), "")
        .into_owned();
    let document = load(&browser, &bare, "", &[]);
    for expected in [
        "flashinfer asked nvcc 12.4, and for SM 12.x it requires 12.9 or newer</h1>",
        "<th scope=\"row\">flashinfer<small>",
        "12.4.131",
        "export CUDA_HOME=/opt/toolkits/cuda-13.0",
        "ninja -v -C page",
    ] {
        assert!(document.contains(expected), "{expected}");
    }
    // Controls that do nothing without scripts are not shown.
    assert!(document.contains("id=\"events-tools\" hidden"));
    assert!(document.contains("<noscript>"));
}
