// What htmx does not do: charts, pausing, selecting, and the live page.
"use strict";
(() => {
  const $ = (s, at = document) => at.querySelector(s);
  const $$ = (s, at = document) => [...at.querySelectorAll(s)];
  const root = document.documentElement;
  root.classList.add("js");
  if (window.htmx) htmx.config.timeout = 20000; // ms: a server that hangs is no other than one that is away
  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();

  // Charts. Each is drawn again when its place is new, or as wide as it was not.
  const ms = (v) => v == null ? "–" : v < 1000 ? +v.toPrecision(3) + " ms" : +(v / 1000).toPrecision(3) + " s";
  // Times are in the zone of the page, which is written beside them.
  const zone = root.dataset.zone || "UTC";
  const format = (options) => {
    try { return new Intl.DateTimeFormat("sv-SE", { ...options, timeZone: zone }); } catch { return new Intl.DateTimeFormat("sv-SE", { ...options, timeZone: "UTC" }); }
  };
  const walls = format({ year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
  const offsets = format({ timeZoneName: "shortOffset" });
  const wall = (t) => walls.format(t).replace(",", "."); // 2026-11-20 09:00:00.250
  const offset = (t) => offsets.formatToParts(t).find((p) => p.type === "timeZoneName").value.replace("GMT", "UTC").replace("−", "-");
  const mine = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC");
  if (!document.cookie.split("; ").includes("xtimer_zone_mine=" + mine)) document.cookie = "xtimer_zone_mine=" + mine + "; path=/; max-age=31536000; samesite=strict";
  const local = (t) => uPlot.tzDate(new Date(t * 1e3), zone);
  function draw(place) {
    if (!window.uPlot || place.drawn === place.clientWidth || !place.clientWidth) return;
    place.drawn = place.clientWidth;
    const columns = JSON.parse(place.dataset.columns), labels = JSON.parse(place.dataset.labels);
    // uPlot would show three years around a single point.
    if (columns[0].length === 1) columns.forEach((c, i) => c.unshift(i ? null : c[0] - 600));
    const runs = place.dataset.chart === "runs";
    const colours = runs ? ["good", "bad", "bad"] : ["good", "accent", "warn"];
    // A task that was not sent has no lateness: it is a hollow mark on the upper edge, off the scale.
    const unsent = (i) => runs && i === 2;
    const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
    const time = (_, vs, __, ___, step) => vs.map((v) => wall(v * 1e3).slice(...(step < 60 ? [11, 19] : step < 86400 ? [11, 16] : [0, 10])));
    const decades = (_, __, from, to) => { const all = []; for (let d = 1e-3; d <= to; d *= 10) if (d >= from * 0.99) all.push(d); return all; };
    place.replaceChildren();
    new uPlot({
      width: place.clientWidth, height: 200, tzDate: local,
      scales: { x: { range: (_, from, to) => [Math.min(from, to - (runs ? 10 : 600)), to] }, y: { distr: 3, log: 10 }, edge: { range: [0, 1.1] } },
      series: [{ label: offset(Date.now()), value: (_, v) => v == null ? "–" : wall(v * 1e3).slice(11, 19) }, ...labels.map((label, i) => ({
        label, stroke: colour(colours[i]), width: 1.5, scale: unsent(i) ? "edge" : "y", value: (_, v) => unsent(i) ? (v == null ? "–" : label) : ms(v),
        points: runs ? { show: true, size: unsent(i) ? 7 : 5, fill: colour(unsent(i) ? "panel" : colours[i]) } : { show: columns[0].length < 4, size: 5 },
        paths: runs ? () => null : undefined,
      }))],
      axes: [{ ...axis, space: 76, values: time }, { ...axis, size: 72, splits: decades, values: (_, vs) => vs.map((v) => v == null ? "" : ms(v)) }],
      cursor: { points: { show: !runs } },
    }, columns.slice(0, labels.length + 1).map((c, i) => i ? c.map((v) => v === null ? null : Math.max(v, 0.001)) : c), place);
  }
  const watch = new ResizeObserver((es) => es.forEach((e) => draw(e.target)));
  const charts = () => $$(".chart").forEach((c) => { draw(c); watch.observe(c); });

  // Pause: what moves by itself stands still.
  let paused = false;
  document.addEventListener("click", (e) => {
    const b = e.target.closest("#pause");
    if (!b) return;
    paused = !paused;
    b.setAttribute("aria-pressed", paused);
    b.textContent = paused ? b.dataset.paused : b.dataset.running;
    document.dispatchEvent(new Event("paused"));
  });
  document.addEventListener("htmx:beforeRequest", (e) => {
    if (updates(e) && (paused || document.hidden || inUse(e.detail.requestConfig.elt))) e.preventDefault();
  });
  // What somebody types into is not swapped away.
  const inUse = (e) => $$("input:not([type=hidden])", e).some((i) => i.matches(":focus") || i.value !== i.defaultValue);

  document.addEventListener("htmx:beforeSwap", (e) => {
    if (updates(e) && (paused || inUse(e.detail.requestConfig.elt))) e.detail.shouldSwap = false; // it was asked for before
  });

  // Outage: what a page shows is as old as the last answer that it had. Every page
  // asks the server for a sign of life, and notes when one of its own updates fails.
  const outage = $("#outage"), lost = { server: 0, page: 0 };
  let heard = Date.now();
  function tell() {
    const what = lost.server ? "server" : lost.page ? "page" : "";
    root.classList.toggle("stale", !!what);
    outage.hidden = !what;
    const text = what && outage.dataset[what].replace("%s", instant(lost[what]));
    if (outage.textContent !== text) outage.textContent = text;
  }
  const instant = (t) => wall(t).slice(0, 19) + " " + offset(t);
  async function beat() {
    if (document.hidden) return;
    try {
      const p = await fetch("/livez", { cache: "no-store", signal: AbortSignal.timeout(4000) });
      if (!p.ok) throw new Error(p.status);
      heard = Date.now();
      lost.server = 0;
    } catch { lost.server ||= heard; }
    tell();
  }
  setInterval(beat, 5000);
  document.addEventListener("visibilitychange", beat);
  // Not e.target or e.detail.elt: when the answer was swapped in, the element that asked is gone.
  const updates = (e) => (e.detail.requestConfig.elt.getAttribute("hx-trigger") || "").startsWith("every");
  document.addEventListener("htmx:afterRequest", (e) => {
    if (!updates(e)) return;
    if (e.detail.successful) { heard = Date.now(); lost.server = lost.page = 0; } else lost.page ||= heard;
    tell();
  });

  // Keys: / leads to the search, ? shows the keys.
  const find = () => $("input[data-find]") || $("main .search input:not([type=hidden], [type=checkbox])");
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, [contenteditable]")) return;
    if (e.key === "/") {
      e.preventDefault();
      if (find()) { find().focus(); find().select?.(); } else location.href = "/timers#find";
    } else if (e.key === "?") {
      e.preventDefault();
      $("#keys").showModal();
    }
  });
  document.addEventListener("click", async (e) => {
    if (e.target.closest("#help")) $("#keys").showModal();
    const copy = e.target.closest("[data-copy]");
    if (!copy) return;
    const from = document.getElementById(copy.dataset.copy);
    try { await navigator.clipboard.writeText(from.textContent); } catch { // no TLS, or not allowed
      getSelection().selectAllChildren(from);
      document.execCommand("copy");
    }
    copy.textContent = copy.dataset.done;
  });

  // Selecting.
  function selected() {
    const say = $("#selected");
    if (!say) return;
    const n = $$("#list input[name=id]:checked, #list input[name=key]:checked, #list input[name=group]:checked").length;
    say.textContent = n ? say.dataset.text.replace("%d", n) : "";
  }
  document.addEventListener("change", (e) => {
    if (e.target.id === "page-all") $$("#list input[name=id]").forEach((b) => { b.checked = e.target.checked; });
    selected();
  });

  // Live: a row for each task as it ends, the newest 200, drawn 4 times a second.
  const live = $("#live"), most = 200;
  if (live) {
    const rows = $("#live-rows"), state = $("#live-state"), words = JSON.parse(live.dataset.words);
    let waiting = [], left = 0, open = false;
    const el = (tag, text, cls) => { const e = document.createElement(tag); if (text != null) e.textContent = text; if (cls) e.className = cls; return e; };
    const link = (href, text) => { const a = el("a", text); a.href = href; return a; };
    const word = (w) => words[w] || w.replaceAll("_", " ");
    const cell = (...parts) => { const c = el("td"); c.append(...parts.filter((p) => p != null)); return c; };
    function row(t) {
      const r = el("tr", null, "new"), last = t.attempts[t.attempts.length - 1];
      const status = el("span", word(t.status), "tag s-" + t.status);
      const why = t.reason ? el("span", " " + word(t.reason), "muted") : null;
      const due = el("time", wall(Date.parse(t.due)) + " " + offset(Date.parse(t.due)));
      const a = link("/tasks/" + encodeURIComponent(t.key)); a.append(due);
      const late = cell(t.lateness_ms == null ? "–" : ms(t.lateness_ms)); late.className = "n";
      const tries = cell(String(t.attempt_count)); tries.className = "n";
      const name = cell(link("/timers/" + encodeURIComponent(t.timer_id), t.name || t.timer_id), " ", el("span", t.app, "muted")); name.className = "name";
      const heads = $$("thead th", rows.closest("table"));
      r.append(cell(a), name, cell(status, why), late, tries, cell(last ? (last.code && (!last.error_class || last.error_class === "status") ? String(last.code) : word(last.error_class || "")) : ""));
      [...r.children].forEach((c, i) => { c.dataset.label = heads[i].textContent; });
      return r;
    }
    const say = () => {
      state.textContent = paused ? state.dataset.paused : open ? state.dataset.open : state.dataset.away;
      if (left) state.textContent += " · " + state.dataset.dropped.replace("%d", left);
    };
    const events = new EventSource(live.dataset.events);
    events.onopen = () => { open = true; say(); };
    events.onerror = () => { open = false; say(); };
    events.addEventListener("task", (e) => {
      if (paused) { left++; say(); return; }
      waiting.push(e.data);
      if (waiting.length > most) { waiting.shift(); left++; }
    });
    // What ended while the stream was cut, and could not be sent again.
    events.addEventListener("gap", (e) => {
      const gap = JSON.parse(e.data), [from, to] = [gap.from, gap.to].map((t) => instant(Date.parse(t)));
      const said = cell(live.dataset.gap.replace("%s", from).replace("%s", to) + " ", link("/tasks?" + new URLSearchParams({ from: gap.from, to: gap.to }), live.dataset.gapLink));
      said.colSpan = 6;
      const r = el("tr", null, "none gap");
      r.append(said);
      rows.prepend(r);
    });
    document.addEventListener("paused", say);
    setInterval(() => {
      if (!waiting.length || document.hidden) return;
      const none = $("tr.none:not(.gap)", rows);
      if (none) none.remove();
      rows.prepend(...waiting.reverse().map((data) => row(JSON.parse(data))));
      waiting = [];
      while (rows.children.length > most) rows.lastElementChild.remove();
      say();
    }, 250);
    say();
  }

  if (location.hash === "#find" && find()) find().focus();
  const start = () => { charts(); selected(); };
  document.addEventListener("htmx:afterSettle", start);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { $$(".chart").forEach((c) => { c.drawn = 0; }); charts(); });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
})();
