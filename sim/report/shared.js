// SPDX-License-Identifier: Apache-2.0
// What the pages of a run and of a sweep share: formatting of numbers, table rows, colours.
const weft = (function () {
  "use strict";
  const $ = id => document.getElementById(id);
  const text = (v, digits) => v === null || v === undefined ? "–" : v.toLocaleString("en", { maximumFractionDigits: digits === undefined ? 3 : digits });
  const percent = v => v === null ? "–" : text(100 * v, 2) + " %";
  const bits = v => v >= 1e9 ? text(v / 1e9, 2) + " Gbit/s" : v >= 1e6 ? text(v / 1e6, 2) + " Mbit/s" : text(v / 1e3, 1) + " kbit/s";
  const bytes = v => v >= 1e9 ? text(v / 1e9, 2) + " GB" : v >= 1e6 ? text(v / 1e6, 1) + " MB" : text(v / 1e3, 1) + " kB";
  const row = (cells, tag, firstIsText) => { const tr = document.createElement("tr"); cells.forEach((c, i) => { const td = document.createElement(tag || "td"); td.textContent = c; if (i || !firstIsText) td.className = "n"; tr.append(td); }); return tr; };
  // Colours of lines, each with enough contrast to its background; charts are drawn, so they do not follow the style
  // sheet.
  const night = matchMedia("(prefers-color-scheme: dark)"), dark = night.matches, style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--ink"), paper = style.getPropertyValue("--card");
  night.addEventListener("change", () => location.reload());
  const [blue, orange, green, purple, red, teal, olive, grey, yellow] = dark ? ["#6aa5f2", "#f0935a", "#5fc27e", "#c98be0", "#f07a8c", "#4fc7c9", "#d3b84a", "#a3b0c0", "#e5c04a"]
    : ["#2463b5", "#c2571a", "#2f8f4e", "#8a3ea8", "#b3243b", "#0f8b8d", "#7d6608", "#5b6675", "#d9a514"];
  const colours = [blue, orange, green, purple, red, teal, olive, grey];
  const axis = options => { const line = { stroke: style.getPropertyValue("--line"), width: 1 }; return Object.assign({ stroke: ink, grid: line, ticks: line }, options, options.grid ? { grid: Object.assign({}, line, options.grid) } : {}); };
  // What became of every byte that left an uplink: figures and their colours.
  const parts = [["useful payload", "share_useful", green], ["dependent", "share_dependent", orange], ["duplicate or late", "share_duplicate", yellow], ["polluted", "share_polluted", red],
    ["lost", "share_lost", grey], ["header", "share_header", blue], ["control", "share_control", purple]];
  const slice = (name, share, colour) => { const d = document.createElement("div"); d.style.cssText = `width:${100 * (share || 0)}%;background:${colour}`; d.title = name; return d; };
  return { $, text, percent, bits, bytes, row, colours, parts, slice, axis, ink, paper };
})();
