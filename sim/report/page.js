// SPDX-License-Identifier: Apache-2.0
// The report's page: everything it shows is in `run`, which stands above it in the file.
(function () {
  "use strict";
  const $ = id => document.getElementById(id), m = run.metrics;
  const text = (v, digits) => v === null || v === undefined ? "–" : v.toLocaleString("en", { maximumFractionDigits: digits === undefined ? 3 : digits });
  const percent = v => v === null ? "–" : text(100 * v, 2) + " %";
  const bits = v => v >= 1e9 ? text(v / 1e9, 2) + " Gbit/s" : v >= 1e6 ? text(v / 1e6, 2) + " Mbit/s" : text(v / 1e3, 1) + " kbit/s";
  const row = (cells, tag, firstIsText) => { const tr = document.createElement("tr"); cells.forEach((c, i) => { const td = document.createElement(tag || "td"); td.textContent = c; if (i || !firstIsText) td.className = "n"; tr.append(td); }); return tr; };
  $("title").textContent = "Scenario " + run.scenario;
  document.title = "weft sim: " + run.scenario;
  $("subtitle").textContent = `seed ${run.seed}, ${run.parameters.stream.scheme}, ${run.parameters.stream.fidelity}; ${text(run.events)} events in ${text(run.wall_s, 1)} s; state ${run.state_hash.slice(0, 16)}…; revision ${run.revision}`;
  [["continuity", percent(m.continuity)], ["viewers", text(m.viewers)], ["start-up p50 / p95 / p99", [m.startup_p50_s, m.startup_p95_s, m.startup_p99_s].map(v => text(v, 1)).join(" / ") + " s"],
   ["lag p50", m.lag_p50_s === null ? "–" : text(m.lag_p50_s, 2) + " s"], ["stalls per hour", text(m.stalls_per_hour, 2)], ["server saving", percent(m.server_saving)], ["source sends", text(m.source_streams, 2) + " streams"]]
    .forEach(([name, value]) => { const d = document.createElement("div"), b = document.createElement("b"), s = document.createElement("span"); d.className = "tile"; b.textContent = value; s.textContent = name; d.append(b, s); $("tiles").append(d); });

  const colours = ["#2463b5", "#c2571a", "#2f8f4e", "#8a3ea8", "#b3243b", "#0f8b8d"];
  function chart(id, data, series, format, xLabel, range) {
    const box = $(id);
    if (!data[0].length) { box.className = "none"; box.textContent = "nothing to show in this mode"; return; }
    new uPlot({
      width: Math.max(280, box.clientWidth), height: 240, scales: { x: { time: false }, y: range ? { range } : {} },
      axes: [{ label: xLabel || "seconds", size: 40, labelSize: 18 }, { size: 84, values: (u, vs) => vs.map(format) }],
      series: [{ label: xLabel || "s" }].concat(series.map((s, i) => Object.assign({ stroke: colours[i % colours.length], width: 1.5, points: { show: false }, value: (u, v) => v === null ? "–" : format(v) }, s))),
    }, data, box);
  }
  const s = run.series, t = s.second;
  const paced = run.segment_s > 0;
  chart("continuity", paced ? [t, s.due.map((d, i) => d ? s.in_time[i] / d : null)] : [[]], [{ label: "continuity" }], percent, "", [0, 1.02]);
  chart("delays", run.quantiles.startup.length ? [run.quantiles.seconds, run.quantiles.startup, run.quantiles.lag] : [[]], [{ label: "start-up" }, { label: "lag" }], percent, "seconds", [0, 1.02]);
  chart("stalls", paced ? [t, s.due.map((d, i) => d - s.in_time[i]), s.stalls] : [[]], [{ label: "skipped" }, { label: "stalls" }], v => text(v, 0));
  chart("upload", [t, s.source_bytes.map(b => 8 * b), s.peer_bytes.map(b => 8 * b), s.online.map(n => paced ? n * run.rate_bits_per_s : null)],
    [{ label: "source" }, { label: "peers" }, { label: "audience × rate", dash: [6, 4] }], bits);
  const parts = [["useful payload", m.share_useful, "#2f8f4e"], ["dependent", m.share_dependent, "#c2571a"], ["duplicate or late", m.share_duplicate, "#d9a514"], ["polluted", m.share_polluted, "#b3243b"],
    ["lost", m.share_lost, "#7a8390"], ["header", m.share_header, "#2463b5"], ["control", m.share_control, "#8a3ea8"]];
  $("split-table").append(row(["", "share of all sent bytes", "bytes"], "th", true));
  parts.forEach(([name, share, colour]) => {
    const d = document.createElement("div"); d.style.cssText = `width:${100 * (share || 0)}%;background:${colour}`; d.title = name; $("split").append(d);
    const tr = row([name, percent(share), text(Math.round((share || 0) * m.sent_bytes), 0)], "td", true); tr.firstChild.style.borderLeft = "10px solid " + colour; $("split-table").append(tr);
  });
  const lines = run.rank.peers.slice(0, 24);
  chart("rank", run.rank.time.length ? [run.rank.time].concat(lines.map(p => p.packets), [run.rank.mean]) : [[]],
    lines.map(p => ({ label: "peer " + p.peer, width: 1, stroke: "rgba(36,99,181,.35)" })).concat([{ label: "mean", width: 3, stroke: "#c2571a" }]), v => text(v, 0));
  document.querySelectorAll("#rank .u-legend").forEach(l => l.remove()); // two dozen peers need no legend
  $("classes").append(row(["access", "viewers", "continuity", "start-up p50 (s)", "sent (MB each)", "received (MB each)"], "th", true));
  run.classes.forEach(c => $("classes").append(row([c.name, text(c.viewers), percent(c.continuity), text(c.startup_p50_s), text(c.sent_mb), text(c.received_mb)], "td", true)));
  Object.entries(m).forEach(([k, v]) => $("metrics").append(row([k, v === null ? "–" : text(v, 6)], "td", true)));
  Object.entries(run.parameters).forEach(([group, keys]) => { if (!Array.isArray(keys)) Object.entries(keys).forEach(([k, v]) => $("parameters").append(row([`[${group}] ${k}`, v], "td", true))); });

  // The swarm, frame by frame.
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
  document.body.dataset.ready = "yes";
})();
