// What htmx does not do: charts, pausing, selecting, and the live page.
"use strict";
(() => {
  const $ = (s, at = document) => at.querySelector(s);
  const $$ = (s, at = document) => [...at.querySelectorAll(s)];
  const root = document.documentElement;
  root.classList.add("js");
  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();

  // Charts. Each is drawn again when its place is new, or as wide as it was not.
  const ms = (v) => v == null ? "–" : v < 1000 ? +v.toPrecision(3) + " ms" : +(v / 1000).toPrecision(3) + " s";
  const utc = (t) => uPlot.tzDate(new Date(t * 1e3), "Etc/UTC");
  function draw(place) {
    if (!window.uPlot || place.drawn === place.clientWidth || !place.clientWidth) return;
    place.drawn = place.clientWidth;
    const columns = JSON.parse(place.dataset.columns), labels = JSON.parse(place.dataset.labels);
    // uPlot would show three years around a single point.
    if (columns[0].length === 1) columns.forEach((c, i) => c.unshift(i ? null : c[0] - 600));
    const runs = place.dataset.chart === "runs";
    const colours = runs ? ["good", "bad"] : ["good", "accent", "warn"];
    const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
    const time = (_, vs, __, ___, step) => vs.map((v) => new Date(v * 1e3).toISOString().slice(...(step < 60 ? [11, 19] : step < 86400 ? [11, 16] : [0, 10])));
    const decades = (_, __, from, to) => { const all = []; for (let d = 1e-3; d <= to; d *= 10) if (d >= from * 0.99) all.push(d); return all; };
    place.replaceChildren();
    new uPlot({
      width: place.clientWidth, height: 200, tzDate: utc,
      scales: { x: { range: (_, from, to) => [Math.min(from, to - (runs ? 10 : 600)), to] }, y: { distr: 3, log: 10 } },
      series: [{ label: "UTC", value: (_, v) => v == null ? "–" : new Date(v * 1e3).toISOString().slice(11, 19) }, ...labels.map((label, i) => ({
        label, stroke: colour(colours[i]), width: 1.5, value: (_, v) => ms(v),
        points: runs ? { show: true, size: 5, fill: colour(colours[i]) } : { show: columns[0].length < 4, size: 5 },
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
    const moves = (e.target.getAttribute("hx-trigger") || "").startsWith("every");
    if (moves && (paused || document.hidden)) e.preventDefault();
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
      const due = el("time", t.due.replace("T", " ").replace("Z", ""));
      const a = link("/tasks/" + encodeURIComponent(t.key)); a.append(due);
      const late = cell(t.lateness_ms == null ? "–" : ms(t.lateness_ms)); late.className = "n";
      const tries = cell(String(t.attempt_count)); tries.className = "n";
      const name = cell(link("/timers/" + encodeURIComponent(t.timer_id), t.name || t.timer_id), " ", el("span", t.app, "muted")); name.className = "name";
      r.append(cell(a), name, cell(status, why), late, tries, cell(last ? (last.code && (!last.error_class || last.error_class === "status") ? String(last.code) : word(last.error_class || "")) : ""));
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
    document.addEventListener("paused", say);
    setInterval(() => {
      if (!waiting.length || document.hidden) return;
      const none = $("tr.none", rows);
      if (none) none.remove();
      rows.prepend(...waiting.reverse().map((data) => row(JSON.parse(data))));
      waiting = [];
      while (rows.children.length > most) rows.lastElementChild.remove();
      say();
    }, 250);
    say();
  }

  const start = () => { charts(); selected(); };
  document.addEventListener("htmx:afterSettle", start);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { $$(".chart").forEach((c) => { c.drawn = 0; }); charts(); });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
})();
