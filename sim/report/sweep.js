// SPDX-License-Identifier: Apache-2.0
// A sweep's page. Everything it shows is in `sweep`, which precedes it in the file.
(function () {
  "use strict";
  const { $, text, row, colours, parts, slice, axis, ink, paper } = weft, { axes, points, runs, metrics } = sweep;
  points.forEach(p => { p.list = []; });
  runs.forEach(r => points[r.point].list.push(r));

  // --- Figures: their names, and how their numbers are written
  const groups = [["Playback", { continuity: "continuity", skip_rate: "segments skipped", stalls_per_hour: "stalls per hour", stalled_share: "share of time stalled", seek_wait_share: "share of time waiting after seeks", startup_p50_s: "start-up delay, p50", startup_p95_s: "start-up delay, p95", startup_p99_s: "start-up delay, p99",
    never_played: "viewers that never played", lag_p50_s: "lag, p50", lag_p95_s: "lag, p95", lag_p99_s: "lag, p99", done_p50_s: "time to have everything, p50", done_p95_s: "time to have everything, p95", done_p99_s: "time to have everything, p99", done: "viewers that have everything" }],
  ["The source", { source_streams: "source sends, in streams", source_bytes: "source sends", server_saving: "server saving" }],
  ["Sent bytes", { share_useful: "useful payload", share_dependent: "dependent payload", share_duplicate: "duplicate or late payload", share_polluted: "polluted payload", share_lost: "lost payload", share_header: "headers", share_control: "control messages", dependent_per_innovative: "dependent per innovative packet", sent_bytes: "sent by all" }],
  ["The server", { coding_load: "lane busy", coding_bytes_per_s: "coding rate", uplink_load: "uplink busy", requests: "requests", requests_again: "requests again", requests_unanswered: "requests unanswered at the end", packets_per_product: "packets per product", coded_p50_ms: "until coded, p50", coded_p95_ms: "until coded, p95", coded_p99_ms: "until coded, p99",
    answer_p50_ms: "until at the client, p50", answer_p95_ms: "until at the client, p95", answer_p99_ms: "until at the client, p99" }],
  ["Coded objects", { coded_lost: "coded: objects lost", coded_durability: "coded: durability", coded_read_availability: "coded: reads served", coded_reads_decoded: "coded: reads that decoded", coded_repairs: "coded: repairs", coded_repaired_parts: "coded: shards made anew", coded_repair_bytes: "coded: moved by repairs", coded_repair_share_per_day: "coded: moved a day / kept", coded_overhead: "coded: kept / bytes of objects" }],
  ["Copied objects", { copied_lost: "copied: objects lost", copied_durability: "copied: durability", copied_read_availability: "copied: reads served", copied_reads_decoded: "copied: reads that decoded", copied_repairs: "copied: repairs", copied_repaired_parts: "copied: copies made anew", copied_repair_bytes: "copied: moved by repairs", copied_repair_share_per_day: "copied: moved a day / kept", copied_overhead: "copied: kept / bytes of objects" }]];
  const names = Object.assign({}, ...groups.map(g => g[1]));
  const label = m => names[metrics[m]] || metrics[m].replaceAll("_", " ");
  const isShare = name => /^(continuity|skip_rate|server_saving|stalled_share|seek_wait_share|.*_load|.*_durability|.*_availability|.*_reads_decoded|.*_share_per_day|share_.*)$/.test(name);
  // Each figure has one unit, so that columns and axes can be compared.
  function unitOf(m) {
    const name = metrics[m], most = Math.max(0, ...runs.map(r => Math.abs(r.values[m] || 0)));
    if (isShare(name)) return { name: "\u00a0%", per: 0.01 };
    if (name.endsWith("_ms")) return { name: "\u00a0ms", per: 1 };
    if (name.endsWith("_s") && !name.endsWith("per_s")) return { name: "\u00a0s", per: 1 };
    const scale = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]].find(s => most >= s[0]);
    if (/_bytes(_per_s)?$/.test(name)) return { name: (scale ? `\u00a0${scale[1]}B` : "\u00a0B") + (name.endsWith("per_s") ? "/s" : ""), per: scale ? Math.min(scale[0], scale[1] === "k" ? 1e3 : 1e15) : 1 };
    return { name: "", per: 1 };
  }
  const fixed = (v, digits) => v.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const order = v => Math.floor(Math.log10(Math.abs(v)));
  // As many digits as the interval justifies: two digits of the interval; without one, four of the number.
  function digitsOf(mean, half) {
    if (half) return Math.min(9, Math.max(0, 1 - order(half)));
    return mean && !Number.isInteger(mean) ? Math.min(9, Math.max(0, 3 - order(mean))) : 0;
  }
  function meanText(m, mean, half) {
    if (mean === null) return "–";
    const u = unitOf(m), a = mean / u.per, h = half === null ? null : half / u.per, digits = digitsOf(a, h);
    return (h === null ? text(a, digits) : fixed(a, digits) + " ± " + fixed(h, digits)) + u.name;
  }
  const valueText = (m, v) => meanText(m, v, null);
  const drawn = metrics.map((name, m) => m).filter(m => runs.some(r => r.values[m] !== null));
  const many = points.some(p => p.runs > 1);

  // --- Summary of the sweep
  const plural = (n, word) => `${text(n)} ${word}${n === 1 ? "" : "s"}`;
  const wanted = points.length * sweep.seeds;
  $("title").textContent = "Sweep of " + sweep.scenario;
  document.title = "weft sim: sweep of " + sweep.scenario;
  $("subtitle").textContent = `${plural(runs.length, "run")}: ${axes.length ? axes.map(a => `${a.key} (${a.values.length})`).join(" × ") + " × " : ""}${plural(sweep.seeds, "seed")}; revision ${sweep.revisions.join(", ") || "–"}`;
  const wrong = metrics.indexOf("wrong_bytes"), spoilt = wrong < 0 ? [] : runs.filter(r => r.values[wrong] > 0);
  const warnings = [];
  if (runs.length < wanted) warnings.push(`${plural(wanted - runs.length, "run")} of ${text(wanted)} missing: the sweep was not finished when this page was written. What is shown is of the others.`);
  const stood = runs.filter(r => r.values[metrics.indexOf("no_progress")] > 0);
  if (stood.length) warnings.push(`${plural(stood.length, "run")} made no progress for ten minutes: of them, and of the means of their points, there is no other figure than who came and who was done.`);
  if (spoilt.length) warnings.push(`Bytes came out wrong in ${plural(spoilt.length, "run")}.`);
  if (sweep.revisions.length > 1) warnings.push("The runs are of different revisions.");
  $("missing").textContent = warnings.join(" "); $("missing").hidden = !warnings.length;
  $("command").textContent = sweep.command;
  $("differs").textContent = sweep.differs.length ? `Not swept, but different between runs: ${sweep.differs.join(", ")} (see the runs' files).` : ""; $("differs").hidden = !sweep.differs.length;
  sweep.common.forEach(([group, key, value]) => $("parameters").append(row([`[${group}] ${key}`, value], "td", true)));
  $("means-note").textContent = many ? "Mean ± half of the 95 % interval, Student's t over the runs of a point (n). A click on a heading sorts." : "One run of each point: there are no intervals. A click on a heading sorts.";

  // --- Axes: keys of the sweep and, if there are several, the seeds
  const numeric = a => a.numbers.every(v => v !== null) && new Set(a.numbers).size > 1;
  const SEED = axes.length, seeds = [...new Set(runs.map(r => r.seed))].sort((a, b) => a - b);
  const all = axes.concat(seeds.length > 1 && !axes.some(a => a.key === "seed") ? [{ key: "seed", help: "", values: seeds, numbers: seeds.map(Number) }] : []);
  function bestAxis() {
    const fit = axes.map((a, i) => i).filter(i => numeric(axes[i]));
    const from = fit.length ? fit : axes.map((a, i) => i).filter(i => axes[i].values.length > 1);
    return from.length ? from.reduce((best, i) => axes[i].values.length > axes[best].values.length ? i : best) : axes.length && !all[SEED] ? 0 : SEED;
  }
  const option = (value, name) => { const o = document.createElement("option"); o.value = value; o.textContent = name; return o; };
  [...groups, ["Others", null]].forEach(([group, of]) => {
    const inside = drawn.filter(m => of ? of[metrics[m]] : !names[metrics[m]]);
    if (!inside.length) return;
    const g = document.createElement("optgroup"); g.label = group;
    inside.forEach(m => g.append(option(metrics[m], label(m)))); $("metric").append(g);
  });
  all.forEach((a, i) => $("over").append(option(i, a.key)));
  const filters = axes.map((a, i) => {
    const l = document.createElement("label"), s = document.createElement("select");
    s.append(option("", "all")); a.values.forEach((v, k) => s.append(option(k, v)));
    l.append(a.key + " ", s); $("filters").append(l); s.onchange = update; l.hidden = a.values.length < 2;
    return s;
  });

  // --- Lines: one for each combination of keys other than the x axis
  function linesOf(over, m) {
    const keys = axes.map((a, i) => i).filter(i => i !== over && axes[i].values.length > 1), lines = new Map();
    points.forEach((p, at) => {
      if (keys.some(i => filters[i].value !== "" && +filters[i].value !== p.at[i])) return;
      const id = keys.map(i => p.at[i]).join();
      if (!lines.has(id)) lines.set(id, { at: keys.map(i => p.at[i]), name: keys.map(i => `${axes[i].key} ${axes[i].values[p.at[i]]}`).join(", ") || (many && over !== SEED ? "mean" : "one run each"), dots: [] });
      const dots = lines.get(id).dots, a = all[over], numbers = a && numeric(a);
      if (over === SEED) p.list.forEach(r => { const k = a ? a.values.indexOf(r.seed) : 0; dots.push({ x: numbers ? a.numbers[k] : k, mean: r.values[m], half: null, n: 1, single: [] }); });
      else dots.push({ x: numbers ? a.numbers[p.at[over]] : p.at[over], mean: p.mean[m], half: p.half[m], n: p.runs, single: p.list.map(r => r.values[m]).filter(v => v !== null) });
    });
    // Colours for one key, dashes and marks for the others.
    const first = keys.filter(i => filters[i].value === "")[0], place = keys.indexOf(first), rest = [];
    return [...lines.values()].map(l => {
      const other = l.at.filter((v, i) => i !== place).join(), colour = place < 0 ? 0 : l.at[place];
      if (!rest.includes(other)) rest.push(other);
      const style = rest.indexOf(other);
      return Object.assign(l, { colour: colours[colour % colours.length], mark: (style ? style : Math.floor(colour / colours.length)) % 4, dash: [null, [8, 4], [2, 3], [10, 3, 2, 3]][style % 4], dots: l.dots.sort((a, b) => a.x - b.x) });
    });
  }

  // --- The chart
  let plot = null;
  const marks = [(g, x, y, r) => g.arc(x, y, r, 0, 7), (g, x, y, r) => g.rect(x - r, y - r, 2 * r, 2 * r), (g, x, y, r) => { g.moveTo(x, y - 1.3 * r); g.lineTo(x + 1.2 * r, y + r); g.lineTo(x - 1.2 * r, y + r); g.closePath(); }, (g, x, y, r) => { g.moveTo(x, y - 1.4 * r); g.lineTo(x + 1.4 * r, y); g.lineTo(x, y + 1.4 * r); g.lineTo(x - 1.4 * r, y); g.closePath(); }];
  function drawLine(u, l, shift, joined, singles) {
    const g = u.ctx, px = devicePixelRatio || 1, at = d => [u.valToPos(d.x, "x", true) + shift * px, u.valToPos(d.mean, "y", true)], there = l.dots.filter(d => d.mean !== null);
    g.strokeStyle = g.fillStyle = l.colour;
    if (singles) { g.globalAlpha = 0.4; l.dots.forEach(d => d.single.forEach(v => { g.beginPath(); g.arc(u.valToPos(d.x, "x", true) + (shift + 7) * px, u.valToPos(v, "y", true), 2.8 * px, 0, 7); g.fill(); })); g.globalAlpha = 1; }
    g.lineWidth = 1.6 * px;
    if (joined) { // not across points without a mean
      g.setLineDash((l.dash || []).map(d => d * px)); g.beginPath();
      l.dots.forEach((d, i) => { if (d.mean !== null) g[i && l.dots[i - 1].mean !== null ? "lineTo" : "moveTo"](...at(d)); });
      g.stroke(); g.setLineDash([]);
    }
    there.forEach(d => {
      const [x, y] = at(d);
      if (d.half !== null) {
        const low = u.valToPos(d.mean - d.half, "y", true), high = u.valToPos(d.mean + d.half, "y", true), cap = 4 * px;
        g.beginPath(); g.moveTo(x, low); g.lineTo(x, high); g.moveTo(x - cap, low); g.lineTo(x + cap, low); g.moveTo(x - cap, high); g.lineTo(x + cap, high); g.stroke();
      }
      g.beginPath(); marks[l.mark](g, x, y, 3.6 * px); g.fill();
    });
  }
  function rangeOf(m, lines, singles) {
    let low = Infinity, high = -Infinity;
    const take = v => { if (v !== null) { low = Math.min(low, v); high = Math.max(high, v); } };
    lines.forEach(l => l.dots.forEach(d => { take(d.mean); if (d.half) { take(d.mean - d.half); take(d.mean + d.half); } if (singles) d.single.forEach(take); }));
    const least = Math.min(...runs.map(r => r.values[m]).filter(v => v !== null)), most = Math.max(...runs.map(r => r.values[m]).filter(v => v !== null));
    const pad = high > low ? 0.06 * (high - low) : Math.abs(high) * 0.05 || 1;
    low -= pad; high += pad;
    if ($("zero").checked) low = Math.min(low, 0);
    if (least >= 0) low = Math.max(low, $("zero").checked ? 0 : -pad); // nothing can be below zero
    if (isShare(metrics[m]) && most <= 1) high = Math.min(high, 1 + 0.06 * (1 - low)); // nor a share above one
    return [low, high];
  }
  function update() {
    const m = metrics.indexOf($("metric").value), over = +$("over").value, a = all[over], numbers = !!a && numeric(a);
    filters.forEach((s, i) => { s.parentNode.hidden = i === over || axes[i].values.length < 2; });
    const positive = numbers && over !== SEED && a.numbers.every(v => v > 0), log = positive && $("log").checked, singles = $("single").checked && over !== SEED && many;
    $("log-label").hidden = !positive; $("single").parentNode.hidden = over === SEED || !many;
    const lines = m < 0 ? [] : linesOf(over, m), xs = [...new Set(lines.flatMap(l => l.dots.map(d => d.x)))].sort((p, q) => p - q), shown = lines.filter(l => l.dots.some(d => d.mean !== null || d.single.length));
    if (plot) plot.destroy();
    plot = null;
    $("nothing").hidden = shown.length > 0; $("nothing").textContent = runs.length ? "nothing to show of this figure here" : "no run is done yet";
    const unit = m < 0 ? { name: "", per: 1 } : unitOf(m);
    $("caption").textContent = m < 0 ? "" : label(m) + (label(m) === metrics[m] ? "" : ` (${metrics[m]})`) + (a ? ` over ${a.key}${a.help ? ": " + a.help : ""}` : "") + (singles ? ". Faint: single runs" : "") + (over !== SEED && many ? "; bars: 95 % intervals of the means" : "");
    if (m >= 0) { table(m); if ($("runs-box").open) runTable(m); }
    if (!shown.length) return;
    const range = rangeOf(m, lines, singles), ceiling = isShare(metrics[m]) && runs.every(r => r.values[m] <= 1), used = numbers ? xs : a ? a.values.map((v, i) => i) : [0];
    const span = numbers ? used[used.length - 1] - used[0] : used.length, ends = !numbers ? [-0.5, used.length - 0.5] : log ? [used[0] / (used[used.length - 1] / used[0]) ** 0.04, used[used.length - 1] * (used[used.length - 1] / used[0]) ** 0.04] : [used[0] - 0.04 * (span || 1), used[used.length - 1] + 0.04 * (span || 1)];
    const wide = Math.max(280, $("chart").clientWidth), gap = numbers ? Math.min(4, 24 / lines.length) : 0.6 * (wide - 100) / used.length / Math.max(2, lines.length);
    const where = v => log ? Math.log(v) : v, px = v => (where(v) - where(ends[0])) / (where(ends[1]) - where(ends[0])) * (wide - 100);
    const marked = []; // as many values as there is room for
    used.forEach(v => { if (!numbers || !marked.length || px(v) - px(marked[marked.length - 1]) > 44) marked.push(v); });
    const name = v => { const i = numbers ? a.numbers.indexOf(v) : v; return a ? a.values[i] : ""; };
    plot = new uPlot({
      width: wide, height: Math.max(300, Math.min(460, Math.round(0.42 * wide))), scales: { x: { time: false, distr: log ? 3 : 1, range: () => ends }, y: { range: () => range } },
      axes: [axis({ label: a ? a.key : "", size: 40, labelSize: 20, grid: { show: numbers }, splits: () => marked, filter: (u, vs) => vs, values: (u, vs) => vs.map(v => v === null ? "" : name(v)) }),
        axis({ label: label(m), labelSize: 22, size: 78, values: (u, vs) => { const step = vs.length > 1 ? Math.abs(vs[1] - vs[0]) / unit.per : 1; return vs.map(v => ceiling && v > 1.0001 ? "" : fixed(v / unit.per, Math.max(0, Math.min(9, -order(step || 1) + (Math.abs(step / 10 ** order(step || 1) - 2.5) < 1e-6 ? 1 : 0)))) + unit.name); } })],
      series: [{ label: a ? a.key : "", value: (u, v) => v === null ? "" : name(v) }].concat(lines.map(l => ({ label: l.name, stroke: l.colour, dash: l.dash || undefined, width: 2, paths: () => null, points: { show: false }, value: (u, v, s, i) => { const d = i === null ? null : l.dots.find(d => d.x === xs[i]); return d ? (d.n ? meanText(m, d.mean, d.half) : "no run") : ""; } }))),
      legend: { markers: { dash: (u, i) => i && lines[i - 1].dash ? "dashed" : "solid" } }, cursor: { points: { show: false }, drag: { x: false, y: false } },
      hooks: { draw: [u => { const g = u.ctx; g.save(); g.beginPath(); g.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height); g.clip(); lines.forEach((l, i) => { if (u.series[i + 1].show) drawLine(u, l, (i - (lines.length - 1) / 2) * gap, numbers && over !== SEED, singles); }); g.restore(); }] },
    }, [xs].concat(lines.map(l => xs.map(x => { const d = l.dots.find(d => d.x === x); return d ? d.mean : null; }))), $("chart"));
    remember();
  }

  // --- Tables
  const main = { swarm: ["continuity", "startup_p50_s", "startup_p95_s", "stalls_per_hour", "done_p50_s", "source_streams", "server_saving", "share_useful"], server: ["continuity", "coding_load", "coded_p50_ms", "answer_p50_ms", "answer_p95_ms", "packets_per_product"],
    store: ["coded_lost", "copied_lost", "coded_read_availability", "copied_read_availability", "coded_repair_bytes", "copied_repair_bytes"] }[sweep.kind];
  const sorting = { means: null, runs: null };
  // Columns: { name, title, metric, text, of(item), show(item) (text or node) }.
  function fill(id, columns, items) {
    const by = sorting[id], t = $(id), head = document.createElement("tr"), body = document.createElement("tbody");
    t.textContent = "";
    columns.forEach(c => {
      const th = document.createElement("th"); th.textContent = c.name; th.title = c.title || ""; th.scope = "col"; th.className = (c.text ? "" : "n ") + (c.chosen ? "chosen" : "");
      if (c.metric !== undefined) th.dataset.metric = metrics[c.metric];
      th.setAttribute("aria-sort", by && by.name === c.name ? (by.down ? "descending" : "ascending") : "none"); th.tabIndex = 0;
      th.onclick = () => { sorting[id] = { name: c.name, down: !!by && by.name === c.name && !by.down }; fill(id, columns, items); };
      th.onkeydown = e => { if (e.key === "Enter") th.onclick(); };
      head.append(th);
    });
    const column = by && columns.find(c => c.name === by.name), rank = column && (i => column.of(i));
    const sorted = !column ? items : [...items].sort((p, q) => { const a = rank(p), b = rank(q); return a === null || b === null ? (a === null) - (b === null) : (by.down ? -1 : 1) * (a < b ? -1 : a > b ? 1 : 0); });
    sorted.forEach(i => {
      const tr = document.createElement("tr");
      columns.forEach(c => { const td = document.createElement("td"); td.className = (c.text ? "" : "n ") + (c.chosen ? "chosen" : ""); const v = c.show(i); td.append(v); if (c.mark) c.mark(td, i); tr.append(td); });
      body.append(tr);
    });
    const top = document.createElement("thead"); top.append(head); t.append(top, body);
  }
  const keyColumn = (a, i, at) => ({ name: a.key, title: a.help, text: !numeric(a), of: p => { const k = at(p)[i]; return a.numbers[k] === null || !numeric(a) ? k : a.numbers[k]; }, show: p => a.values[at(p)[i]] });
  function table(m) {
    const wantedOnes = $("all").checked ? drawn : [...new Set([m, ...main.map(n => metrics.indexOf(n))])].filter(k => k === m || drawn.includes(k) && runs.some(r => r.values[k]));
    const columns = axes.map((a, i) => keyColumn(a, i, p => p.at)).concat([{ name: "n", title: "runs", of: p => p.runs, show: p => text(p.runs) }],
      wantedOnes.map(k => ({ name: label(k), title: metrics[k], metric: k, chosen: k === m, of: p => p.mean[k], show: p => p.runs ? meanText(k, p.mean[k], p.half[k]) : "no run", mark: (td, p) => { td.dataset.mean = p.mean[k] === null ? "" : p.mean[k]; td.dataset.half = p.half[k] === null ? "" : p.half[k]; } })));
    fill("means", columns, points);
  }
  function runTable(m) {
    const link = r => { const a = document.createElement("a"); a.href = `runs/${r.id}/run.json`; a.textContent = r.id; return a; };
    fill("runs", axes.map((a, i) => keyColumn(a, i, r => points[r.point].at)).concat([{ name: "seed", of: r => +r.seed, show: r => r.seed }, { name: label(m), title: metrics[m], metric: m, chosen: true, of: r => r.values[m], show: r => valueText(m, r.values[m]) + (wrong >= 0 && r.values[wrong] > 0 ? " (wrong bytes)" : "") }, { name: "run", text: true, of: r => r.id, show: link }]), runs);
  }
  function bytesTable() {
    const at = parts.map(p => metrics.indexOf(p[1])), useful = at[0], with_ = points.filter(p => useful >= 0 && p.mean[useful] !== null);
    if (!with_.length) return $("bytes").remove();
    parts.forEach(([name, , colour]) => { const s = document.createElement("span"), i = document.createElement("i"); i.style.background = colour; s.append(i, name); $("parts").append(s); });
    const left = tr => { axes.forEach((a, i) => { tr.children[i].className = ""; }); return tr; };
    $("splits").append(left(row(axes.map(a => a.key).concat(["", "useful"]), "th", true)));
    with_.forEach(p => {
      const tr = left(row(axes.map((a, i) => a.values[p.at[i]]).concat(["", meanText(useful, p.mean[useful], p.half[useful])]), "td", true)), bar = document.createElement("div");
      bar.className = "split"; parts.forEach(([name, , colour], i) => bar.append(slice(`${name}: ${at[i] < 0 ? "–" : meanText(at[i], p.mean[at[i]], p.half[at[i]])}`, at[i] < 0 ? 0 : p.mean[at[i]], colour)));
      tr.children[axes.length].append(bar); $("splits").append(tr);
    });
  }

  // --- The chart as a picture, with its title and the names of its lines
  $("png").onclick = () => {
    if (!plot) return;
    const from = plot.ctx.canvas, px = devicePixelRatio || 1, line = 20 * px, named = plot.series.slice(1).filter(s => s.show), across = Math.max(1, Math.floor(from.width / (260 * px))), rows = Math.ceil(named.length / across);
    const to = document.createElement("canvas"), g = to.getContext("2d");
    to.width = from.width; to.height = from.height + (rows + 3) * line;
    g.fillStyle = paper; g.fillRect(0, 0, to.width, to.height); g.fillStyle = ink;
    g.font = `${15 * px}px sans-serif`; g.fillText(`${$("title").textContent}: ${label(metrics.indexOf($("metric").value))} over ${$("over").selectedOptions[0].textContent}`, 12 * px, 1.2 * line, to.width - 24 * px);
    g.drawImage(from, 0, 2 * line);
    g.font = `${13 * px}px sans-serif`;
    named.forEach((s, i) => { const x = (12 + 260 * (i % across)) * px, y = from.height + (2.8 + Math.floor(i / across)) * line; g.fillStyle = typeof s.stroke === "function" ? s.stroke(plot, i + 1) : s.stroke; g.fillRect(x, y - 10 * px, 12 * px, 12 * px); g.fillStyle = ink; g.fillText(s.label, x + 18 * px, y, 230 * px); });
    const a = document.createElement("a"); a.href = to.toDataURL("image/png"); a.download = `${sweep.scenario}-${$("metric").value}.png`; a.click();
  };

  // --- The view is kept in the address, so that it can be shared
  function remember() {
    const q = new URLSearchParams({ figure: $("metric").value, over: all[+$("over").value] ? all[+$("over").value].key : "" });
    filters.forEach((s, i) => { if (s.value !== "") q.set("only-" + axes[i].key, axes[i].values[+s.value]); });
    try { history.replaceState(null, "", "#" + q); } catch (e) { /* some browsers refuse it for files */ }
  }
  function recall() {
    const q = new URLSearchParams(location.hash.slice(1)), choice = all.findIndex(a => a.key === q.get("over"));
    const there = main.filter(n => drawn.includes(metrics.indexOf(n))), moves = n => new Set(points.length > 1 ? points.map(p => p.mean[metrics.indexOf(n)]) : runs.map(r => r.values[metrics.indexOf(n)])).size > 1;
    const figure = drawn.some(m => metrics[m] === q.get("figure")) ? q.get("figure") : there.find(moves) || there[0];
    if (figure) $("metric").value = figure;
    $("over").value = choice >= 0 ? choice : bestAxis();
    filters.forEach((s, i) => { const k = axes[i].values.indexOf(q.get("only-" + axes[i].key)); if (k >= 0) s.value = k; });
    const a = all[+$("over").value];
    $("log").checked = !!a && a !== all[SEED] && numeric(a) && Math.min(...a.numbers) > 0 && Math.max(...a.numbers) / Math.min(...a.numbers) >= 50;
  }

  $("metric").onchange = $("over").onchange = $("single").onchange = $("zero").onchange = $("log").onchange = $("all").onchange = update;
  $("runs-box").ontoggle = () => { if ($("runs-box").open) runTable(metrics.indexOf($("metric").value)); };
  if (!runs.length) $("runs-section").remove();
  bytesTable();
  recall();
  update();
  // Paper is narrower than most windows.
  addEventListener("beforeprint", () => { if (plot) plot.setSize({ width: 680, height: 320 }); });
  addEventListener("afterprint", update);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; update(); } });
  document.body.dataset.ready = "yes";
})();
