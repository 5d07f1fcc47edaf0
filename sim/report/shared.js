// SPDX-License-Identifier: Apache-2.0
// What the pages of a run and of a sweep share: numbers as text, rows of tables, colours.
const weft = (function () {
  "use strict";
  const $ = id => document.getElementById(id);
  const text = (v, digits) => v === null || v === undefined ? "–" : v.toLocaleString("en", { maximumFractionDigits: digits === undefined ? 3 : digits });
  const percent = v => v === null ? "–" : text(100 * v, 2) + " %";
  const bits = v => v >= 1e9 ? text(v / 1e9, 2) + " Gbit/s" : v >= 1e6 ? text(v / 1e6, 2) + " Mbit/s" : text(v / 1e3, 1) + " kbit/s";
  const bytes = v => v >= 1e9 ? text(v / 1e9, 2) + " GB" : v >= 1e6 ? text(v / 1e6, 1) + " MB" : text(v / 1e3, 1) + " kB";
  const row = (cells, tag, firstIsText) => { const tr = document.createElement("tr"); cells.forEach((c, i) => { const td = document.createElement(tag || "td"); td.textContent = c; if (i || !firstIsText) td.className = "n"; tr.append(td); }); return tr; };
  const colours = ["#2463b5", "#c2571a", "#2f8f4e", "#8a3ea8", "#b3243b", "#0f8b8d", "#7d6608", "#5b6675"];
  // Where every byte went that left an uplink: figures and their colours.
  const parts = [["useful payload", "share_useful", "#2f8f4e"], ["dependent", "share_dependent", "#c2571a"], ["duplicate or late", "share_duplicate", "#d9a514"], ["polluted", "share_polluted", "#b3243b"],
    ["lost", "share_lost", "#7a8390"], ["header", "share_header", "#2463b5"], ["control", "share_control", "#8a3ea8"]];
  const slice = (name, share, colour) => { const d = document.createElement("div"); d.style.cssText = `width:${100 * (share || 0)}%;background:${colour}`; d.title = name; return d; };
  return { $, text, percent, bits, bytes, row, colours, parts, slice };
})();
