"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;

  // Light and dark: the system's choice until the reader makes one.
  const theme = $("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // Folding all of a section at once.
  for (const button of document.querySelectorAll("[data-fold]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(open));
      button.textContent = open ? "Fold all" : "Unfold all";
      for (const details of document.querySelectorAll(`#${button.dataset.fold} details`)) details.open = open;
    });
  }
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("#resolution details, #findings details")) details.open = true;
  });

  for (const button of document.querySelectorAll(".remedy button")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = button.previousElementSibling.textContent;
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
      catch { getSelection().selectAllChildren(button.previousElementSibling); }
    });
  }

  // Events: searched as text, drawn a page at a time.
  const events = JSON.parse($("event-data").textContent);
  const lower = events.map((event) => JSON.stringify(event).toLowerCase());
  const position = new Map(events.map((event, index) => [event.id, index]));
  const kinds = [...new Set(events.map((event) => event.kind))].sort();
  const select = $("kind"), search = $("search"), list = $("events-list"), found = $("found"), more = $("more");
  for (const kind of kinds) select.append(new Option(kind, kind));
  const PAGE = 100;
  let matching = [], shown = 0, words = [];

  const base = (path) => String(path ?? "").split("/").pop();
  const seconds = (t) => (t / 1e9).toFixed(3) + " s";
  const summary = (e) => {
    switch (e.kind) {
      case "process-start": return (e.argv ?? []).join(" ") || e.exe;
      case "process-exit": return e.signal != null ? `died of signal ${e.signal}` : `exited ${e.code ?? "?"}`;
      case "exec": return `${e.call} ${(e.argv ?? []).join(" ") || e.path}`;
      case "exec-failed": return `${e.path}: error ${e.errno}`;
      case "library-request": return `${e.call || "dlopen"} ${e.name}`;
      case "library-loaded": return `${e.path} by ${e.rule}${e.rule_detail ? ": " + e.rule_detail : ""}`;
      case "library-failed": return `${e.requested}: ${e.error}`;
      case "call": return `${e.function} ${e.value != null ? "answered " + e.value : "returned " + (e.result ?? "?")}${e.object ? " in " + base(e.object) : ""}`;
      case "message": return e.text;
      case "file": return `${e.op} ${e.path}${e.errno ? `: error ${e.errno}` : ""}`;
      case "fact": return `${e.about} ${e.path ?? e.root ?? e.name ?? ""} ${e.version ?? ""}`;
      case "lost": return `${e.count} ${e.what}: ${e.reason}`;
      case "note": return e.text;
      default: return "";
    }
  };
  // A file that was looked for and is not there is no failure: most searches try several places.
  const bad = (e) => e.kind.endsWith("-failed") || e.kind === "lost" || (e.kind === "process-exit" && e.code !== 0);
  const put = (tag, className, text) => {
    const element = document.createElement(tag);
    element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const marked = (text) => {
    const span = put("span", "s mono");
    const word = words[0];
    let rest = String(text);
    for (let at; word && (at = rest.toLowerCase().indexOf(word)) >= 0;) {
      span.append(rest.slice(0, at), put("mark", "", rest.slice(at, at + word.length)));
      rest = rest.slice(at + word.length);
    }
    span.append(rest);
    return span;
  };
  const row = (event) => {
    const item = put("li", "");
    item.id = `e${event.id}`;
    const details = document.createElement("details");
    const head = document.createElement("summary");
    head.append(
      put("span", "n", `#${event.id}`), put("span", "t", seconds(event.t)),
      put("span", bad(event) ? "k bad" : "k", `${event.kind} ${event.pid || ""}`), marked(summary(event)));
    details.append(head);
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(put("pre", "", JSON.stringify(event, null, 2)));
    });
    item.append(details);
    return item;
  };
  const draw = () => {
    for (const index of matching.slice(shown, shown + PAGE)) list.append(row(events[index]));
    shown = Math.min(matching.length, shown + PAGE);
    more.parentElement.hidden = shown >= matching.length;
    found.textContent = `${matching.length} of ${events.length} events match, ${shown} shown`;
  };
  const filter = () => {
    words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = select.value;
    matching = [];
    for (let index = 0; index < events.length; index++) {
      if (kind && events[index].kind !== kind) continue;
      if (words.every((word) => lower[index].includes(word))) matching.push(index);
    }
    list.replaceChildren();
    shown = 0;
    draw();
  };
  let pending;
  search.addEventListener("input", () => { clearTimeout(pending); pending = setTimeout(filter, 120); });
  select.addEventListener("change", filter);
  more.addEventListener("click", draw);
  $("events-tools").hidden = false;
  filter();

  // A link to an event shows it, wherever it is.
  const reveal = () => {
    const match = /^#e(\d+)$/.exec(location.hash);
    if (!match) return;
    const index = position.get(Number(match[1]));
    if (index === undefined) { found.textContent = `event ${match[1]} is not part of this page; the trace has it`; $("events").scrollIntoView(); return; }
    search.value = ""; select.value = ""; filter();
    while (!$(`e${match[1]}`)) draw();
    const item = $(`e${match[1]}`);
    for (const other of list.querySelectorAll(".target")) other.classList.remove("target");
    item.classList.add("target");
    item.firstElementChild.open = true;
    item.scrollIntoView({ block: "center" });
    item.querySelector("summary").focus({ preventScroll: true });
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
