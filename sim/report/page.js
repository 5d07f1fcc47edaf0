// SPDX-License-Identifier: Apache-2.0
// The report's page. Everything it shows is in `run`, which precedes it in the file.
(function () {
  "use strict";
  const { $, text, percent, bits, bytes, row, colours, parts, slice, axis } = weft, m = run.metrics;
  $("title").textContent = "Scenario " + run.scenario;
  document.title = "weft sim: " + run.scenario;
  const p = run.parameters, k = run.kind;
  document.querySelectorAll("[data-kinds]").forEach(e => { if (!e.dataset.kinds.split(" ").includes(k)) e.remove(); });
  const what = { swarm: () => `${p.stream.scheme}, ${p.stream.fidelity}`, server: () => `server on ${run.backend}, ${p.stream["segment-blocks"]} × ${p.stream["block-bytes"]} bytes`, store: () => `${p.store.code}, ${p.store["data-shards"]} + ${p.store["parity-shards"]} shards of ${p.store["shard-bytes"]}` }[k]();
  $("subtitle").textContent = `seed ${run.seed}, ${what}; ${text(run.events)} events in ${text(run.wall_s, 1)} s; state ${run.state_hash.slice(0, 16)}…; revision ${run.revision}`;
  const times = (name, quantiles, digits, unit) => quantiles.map(q => text(m[`${name}_${q}_${unit}`], digits)).join(" / ") + " " + unit;
  const tiles = {
    swarm: () => [["continuity", percent(m.continuity)], ["viewers", text(m.viewers)], ["start-up p50 / p95 / p99", times("startup", ["p50", "p95", "p99"], 1, "s")],
      ["lag p50", m.lag_p50_s === null ? "–" : text(m.lag_p50_s, 2) + " s"], ["stalls per hour", text(m.stalls_per_hour, 2)], ["server saving", percent(m.server_saving)], ["source sends", text(m.source_streams, 2) + " streams"]],
    server: () => [["segments in time", percent(m.continuity)], ["clients", text(m.viewers)], ["until coded, p50 / p99", times("coded", ["p50", "p99"], 0, "ms")], ["until there, p50 / p99", times("answer", ["p50", "p99"], 0, "ms")],
      ["coding rate", bytes(m.coding_bytes_per_s) + "/s"], ["lane busy", percent(m.coding_load)], ["requests", text(m.requests)], ["packets per product", text(m.packets_per_product, 1)]],
    store: () => [["objects lost, coded", text(m.coded_lost)], ["objects lost, copied", text(m.copied_lost)], ["reads served, coded", percent(m.coded_read_availability)], ["reads served, copied", percent(m.copied_read_availability)],
      ["repairs moved, coded", bytes(m.coded_repair_bytes)], ["repairs moved, copied", bytes(m.copied_repair_bytes)], ["peers online, mean", text(m.online_mean, 1)], ["wrong bytes", text(m.wrong_bytes)]],
  }[k]();
  $("tiles").style.setProperty("--across", tiles.length > 7 ? Math.ceil(tiles.length / 2) : tiles.length); // rows without a gap
  tiles.forEach(([name, value]) => { const d = document.createElement("div"), b = document.createElement("b"), s = document.createElement("span"); d.className = "tile"; b.textContent = value; s.textContent = name; d.append(b, s); $("tiles").append(d); });

  // Axes of counts: from zero to at least 4, even if all counts are zero, with no ticks between whole numbers.
  const counts = (u, least, most) => [0, Math.max(4, 1.05 * most)], whole = Array.from({ length: 30 }, (v, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));
  const few = values => values.filter(v => v !== null).length <= 30; // a line through few distant points would hide them
  const plots = [], widthOf = box => Math.max(280, box.clientWidth), fit = width => plots.forEach(([plot, box]) => plot.setSize({ width: width || widthOf(box), height: 240 }));
  function chart(id, data, series, format, xLabel, range, steps) {
    const box = $(id);
    if (!data[0].length) { box.className = "none"; box.textContent = "nothing to show in this mode"; return; }
    const plot = new uPlot({
      width: widthOf(box), height: 240, scales: { x: { time: false }, y: range ? { range } : {} },
      axes: [axis({ label: xLabel || "seconds", size: 40, labelSize: 18 }), axis(Object.assign({ size: 84, values: (u, vs) => vs.map(format) }, steps ? { incrs: steps } : {}))],
      series: [{ label: xLabel || "s" }].concat(series.map((s, i) => Object.assign({ stroke: colours[i % colours.length], width: 1.5, spanGaps: true, points: { show: few(data[i + 1]), size: 5 }, value: (u, v) => v === null ? "–" : format(v) }, s))),
    }, data, box);
    plots.push([plot, box]);
  }
  function server() {
    const v = run.server, d = v.delays;
    chart("requests", [v.second, v.requests, v.again], [{ label: "requests" }, { label: "again" }], n => text(n, 0));
    chart("answers", d.ms.length ? [d.ms, d.coded, d.answered] : [[]], [{ label: "coded" }, { label: "at the client" }], percent, "milliseconds", [0, 1.02]);
    chart("coded", [v.second, v.coded_bytes, v.second.map(() => m.coding_bytes_per_s)], [{ label: "coded" }, { label: "at most", dash: [6, 4] }], b => bytes(b) + "/s");
    chart("load", [v.second, v.coding_load], [{ label: "busy" }], percent, "", [0, 1.02]);
  }
  function store() {
    const v = run.store, h = v.hour, two = [{ label: "coded" }, { label: "copied" }], count = n => text(n, 0);
    const sum = a => { let all = 0; return a.map(b => all += b); };
    chart("readable", [h, v.coded_readable, v.copied_readable], two, count, "hours", (u, least, most) => [Math.max(0, Math.floor(least - 0.1 * (v.objects - least) - 1)), Math.max(v.objects, most)]);
    chart("lost", [h, v.coded_lost, v.copied_lost], two, n => text(n, 1), "hours", counts, whole);
    chart("repair", [h, v.coded_repair_bytes, v.copied_repair_bytes], two, bytes, "hours");
    chart("repaired", [h, sum(v.coded_repair_bytes), sum(v.copied_repair_bytes)], two, bytes, "hours");
    chart("online", [h, v.online], [{ label: "peers" }], count, "hours", (u, least, most) => [0, Math.max(+p.network.peers || 0, most)]);
    $("ways").append(row(["", "coded", "copied"], "th", true));
    [["bytes kept / bytes of objects", "overhead", text], ["objects lost", "lost", text], ["durability", "durability", percent], ["reads served", "read_availability", percent], ["of these decoded", "reads_decoded", percent],
      ["repairs", "repairs", text], ["parts rebuilt", "repaired_parts", text], ["moved by repairs", "repair_bytes", bytes], ["the same a day / bytes kept", "repair_share_per_day", percent]]
      .forEach(([name, key, format]) => $("ways").append(row([name, format(m["coded_" + key]), format(m["copied_" + key])], "td", true)));
  }
  function playback() {
    const s = run.series, t = s.second;
    const paced = run.segment_s > 0;
    chart("continuity", paced ? [t, s.due.map((d, i) => d ? s.in_time[i] / d : null)] : [[]], [{ label: "continuity" }], percent, "", [0, 1.02]);
    const lags = m.lag_p50_s === null ? [] : [[run.quantiles.lag, { label: "lag" }]]; // on demand nobody lags
    if (!lags.length) $("delays").previousSibling.textContent = "Start-up delay: share of viewers at or below";
    chart("delays", run.quantiles.startup.length ? [run.quantiles.seconds, run.quantiles.startup].concat(lags.map(l => l[0])) : [[]], [{ label: "start-up" }].concat(lags.map(l => l[1])), percent, "seconds", [0, 1.02]);
    if (k === "server") $("pays").textContent = "What the server sends";
    const stalls = k === "swarm" && p.stream.mode === "vod"; // viewers that wait for late segments skip none
    $("stalls").previousSibling.textContent = stalls ? "Stalls per second" : "Segments skipped per second";
    chart("stalls", paced ? [t, stalls ? s.stalls : s.due.map((d, i) => d - s.in_time[i])] : [[]], [{ label: stalls ? "stalls" : "skipped" }], v => text(v, 0), "", counts, whole);
    const upload = [[s.source_bytes.map(b => 8 * b), { label: "source" }], [s.peer_bytes.map(b => 8 * b), { label: "peers" }], [s.online.map(n => paced ? n * run.rate_bits_per_s : null), { label: "audience × rate", dash: [6, 4] }]]
      .filter(([, line]) => k === "swarm" || line.label !== "peers");
    chart("upload", [t].concat(upload.map(u => u[0])), upload.map(u => u[1]), bits);
    $("split-table").append(row(["", "share of all sent bytes", "bytes"], "th", true));
    parts.forEach(([name, key, colour]) => {
      const share = m[key];
      $("split").append(slice(name, share, colour));
      const tr = row([name, percent(share), text(Math.round((share || 0) * m.sent_bytes), 0)], "td", true); tr.firstChild.style.borderLeft = "10px solid " + colour; $("split-table").append(tr);
    });
    const columns = k === "server" ? 5 : 6; // clients of a server send hardly anything
    $("classes").append(row(["access", "viewers", "continuity", "start-up p50 (s)", "received (MB each)", "sent (MB each)"].slice(0, columns), "th", true));
    run.classes.forEach(c => $("classes").append(row([c.name, text(c.viewers), percent(c.continuity), text(c.startup_p50_s), text(c.received_mb), text(c.sent_mb)].slice(0, columns), "td", true)));
  }
  function ranks() {
    const lines = run.rank.peers.slice(0, 24);
    chart("rank", run.rank.time.length ? [run.rank.time].concat(lines.map(p => p.packets), [run.rank.mean]) : [[]],
      lines.map(p => ({ label: "peer " + p.peer, width: 1, stroke: colours[0] + "59", spanGaps: false, points: { show: false } })).concat([{ label: "mean", width: 3, stroke: colours[1] }]), v => text(v, 0));
    document.querySelectorAll("#rank .u-legend").forEach(l => l.remove()); // two dozen peers need no legend
  }
  Object.entries(m).forEach(([k, v]) => $("metrics").append(row([k, v === null ? "–" : text(v, 6)], "td", true)));
  const setting = group => ([k, v]) => $("parameters").append(row([`[${group}] ${k}`, String(v)], "td", true));
  const { classes, ...groups } = run.parameters;
  Object.entries(groups).forEach(([group, keys]) => Object.entries(keys).forEach(setting(group)));
  classes.forEach(({ name, share, ...keys }) => Object.entries(keys).forEach(setting("class " + name)));
  if (k !== "store") playback();
  ({ swarm: () => { ranks(); animate(); }, server, store })[k]();

  // The swarm, frame by frame.
  function animate() {
    if (p.stream.mode === "bulk") $("colour").textContent = "how many segments it holds"; // nobody plays
    if (run.swarm.frame_s !== 0.5) $("frame").textContent = text(run.swarm.frame_s, 1) + " s";
    if (run.trace_cut) $("cut").textContent += "; more happened than is kept, so the end is missing";
    const canvas = $("swarm"), g = canvas.getContext("2d"), frames = run.swarm.frames, nodes = run.swarm.nodes, at = new Map(nodes.map(n => [n.peer, n]));
    const x = n => 30 + n.x * (canvas.width - 60), y = n => 30 + n.y * (canvas.height - 60);
    let frame = Math.min(frames.length - 1, Math.floor(frames.length / 2)), going = true;
    $("time").max = Math.max(0, frames.length - 1);
    function draw() {
      g.fillStyle = "#10161f"; g.fillRect(0, 0, canvas.width, canvas.height);
      const f = frames[frame];
      if (!f) { g.fillStyle = "#9fb0c3"; g.font = "18px sans-serif"; g.fillText("no peers were sampled", 40, 60); return; }
      f.edges.forEach(([from, to, packets]) => {
        const a = at.get(from), b = at.get(to); if (!a || !b) return;
        g.strokeStyle = from === 0 ? "rgba(255,176,84,.75)" : "rgba(96,170,255,.4)"; g.lineWidth = Math.min(4, 0.5 + packets / 12);
        g.beginPath(); g.moveTo(x(a), y(a)); g.lineTo(x(b), y(b)); g.stroke();
      });
      f.peers.forEach(([peer, ahead]) => {
        const n = at.get(peer); if (!n) return;
        const full = Math.max(0, Math.min(1, ahead / 8));
        g.fillStyle = peer === 0 ? "#ffb054" : `hsl(${10 + 120 * full},70%,55%)`; g.beginPath(); g.arc(x(n), y(n), peer === 0 ? 10 : 6, 0, 7); g.fill();
        if (n.mark) { g.strokeStyle = n.mark === 2 ? "#ff4d6a" : "#fff"; g.lineWidth = 2; g.stroke(); }
      });
      g.fillStyle = "#9fb0c3"; g.font = "15px sans-serif"; g.fillText(`${text(f.t, 1)} s   ${Math.max(0, f.peers.length - 1)} sampled peers present`, 16, 24);
      $("clock").textContent = text(f.t, 1) + " s"; $("time").value = frame;
    }
    $("time").oninput = e => { frame = +e.target.value; going = false; $("play").textContent = "Play"; draw(); };
    $("play").onclick = () => { going = !going; $("play").textContent = going ? "Pause" : "Play"; };
    draw();
    setInterval(() => { if (going && frames.length) { frame = (frame + 1) % frames.length; draw(); } }, 150);
  }
  addEventListener("resize", () => fit());
  addEventListener("beforeprint", () => fit(680)); // as on a sweep's page
  addEventListener("afterprint", () => fit());
  document.body.dataset.ready = "yes";
})();
