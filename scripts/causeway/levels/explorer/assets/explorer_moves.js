// The explorer's moves: zoom, pan, history, keys, findings; and what is drawn after each.
function go(a, b, label) {
  if (b - a < 200) { var m = (a + b) / 2; a = m - 100; b = m + 100; }
  if (b - a > (index.span - index.low) * 1.02) { a = index.low; b = index.span; }
  history.push(view.concat([name]));
  if (history.length > 60) history.shift();
  move([a, b], label || "");
}
function move(next, label) {
  began = performance.now();
  view = next;
  name = label;
  draw();
  steps.push({ first: performance.now() - began, settled: pending.size ? null : performance.now() - began });
}
function zoom(factor, at) {
  var middle = at === undefined ? (view[0] + view[1]) / 2 : at;
  go(middle - (middle - view[0]) * factor, middle + (view[1] - middle) * factor);
}
function back() { if (history.length) { var v = history.pop(); move([v[0], v[1]], v[2]); } }
function wheel(e) {
  e.preventDefault();
  var box = e.currentTarget.getBoundingClientRect(), left = e.currentTarget.tagName === "CANVAS" ? X0 : 0;
  var share = (e.clientX - box.left - left) / (box.width - left - (left ? RIGHT : 0));
  zoom(e.deltaY < 0 ? 0.5 : 2, view[0] + Math.min(Math.max(share, 0), 1) * span());
}
var actions = {
  in: function () { zoom(0.25); }, out: function () { zoom(4); }, back: back,
  left: function () { go(view[0] - span() / 2, view[1] - span() / 2); }, right: function () { go(view[0] + span() / 2, view[1] + span() / 2); },
  home: function () { go(index.low, index.span, "whole run"); }
};
var keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", Backspace: "back", Home: "home" };

// a tile came: all is drawn again when the last one is here, or when they take longer than an eye waits
var PATIENCE_MS = 120, waiting = null;
function schedule() {
  if (!pending.size) { clearTimeout(waiting); waiting = null; requestAnimationFrame(draw); }
  else if (waiting === null) waiting = setTimeout(function () { waiting = null; draw(); }, PATIENCE_MS);
}
function draw() {
  var needed = new Set();
  if (index.levels.length) {
    var level = levelFor(span());
    drawLanes(level, needed);
    drawRows(level, needed);
    drawGantt(needed);
    trim(needed);
    $("where").textContent = moment(view[0], span() / 1000) + " to " + moment(view[1], span() / 1000) + ", " + time(span()) + " in view; cells of " + time(index.levels[level].width);
  }
  crumbs();
  if (!pending.size && steps.length && steps[steps.length - 1].settled === null) steps[steps.length - 1].settled = performance.now() - began;
}
function crumbs() {
  var nav = $("crumbs");
  nav.replaceChildren();
  history.slice(-6).forEach(function (v, i) {
    var b = make("button", (v[2] ? v[2] + ", " : "") + time(v[1] - v[0]));
    b.onclick = function () { history.length = Math.max(0, history.length - Math.min(6, history.length) + i); move([v[0], v[1]], v[2]); };
    nav.append(b, make("span", " › "));
  });
  nav.appendChild(make("span", (name ? name + ", " : "") + time(span())));
}
function start(given) {
  index = given;
  index.low = Math.min(index.low || 0, 0);  // copies may run before the first launch
  index.whole = index.launches.reduce(function (n, l) { return n + l[3]; }, 0) >= index.total;
  index.levels.forEach(function (l) { l.set = new Set(l.tiles); });
  view = [index.low, index.span];
  if (!index.levels.length) { $("where").textContent = "This dataset has no launches with times."; return; }
  index.metrics.forEach(function (m, i) { var o = make("option", m.name); o.value = i; $("metric").appendChild(o); });
  $("metric").value = Math.max(0, number("variability"));
  $("metric").onchange = draw;
  index.findings.slice(0, 40).forEach(function (f) {
    var li = make("li"), b = make("button", f.headline);
    b.onclick = function () { go(f.begin, f.end, f.name); };
    li.append(b, make("span", " " + (f.verdict || ""), "verdict"));
    $("findings").appendChild(li);
  });
  if (!index.findings.length) $("findings").appendChild(make("li", "None with a place in time."));
  index.rows.forEach(function (label, i) { var o = make("option", titleOf(label, ", device ")); o.value = i; $("device").appendChild(o); });
  $("device").onchange = function () { choose(+$("device").value); };
  document.querySelectorAll("[data-page]").forEach(function (b) {
    b.hidden = index.rows.length <= shown();
    b.onclick = function () { page(+b.dataset.page); };
  });
  makeLanes();
  ["rows", "gantt"].forEach(function (id) { $(id).addEventListener("wheel", wheel, { passive: false }); });
  $("rows").onclick = function (e) {
    var box = this.getBoundingClientRect(), share = (e.clientX - box.left - X0) / (box.width - X0 - RIGHT);
    var at = view[0] + share * span(), half = span() / 64, r = Math.floor((e.clientY - box.top) / Math.max(8, Math.min(20, 320 / shown())));
    var label = index.rows[r + offset];
    if (share < 0 && label) choose(r + offset === device ? -1 : r + offset);
    if (share < 0 || share > 1) return;
    go(at - half, at + half, label ? "rank " + label[1] : "");
  };
  $("gantt").onclick = function (e) { var l = under(e); if (l) open(l); };
  $("gantt").onmousemove = function (e) { var l = under(e); if (l) $("hover").textContent = describe(l); };
  document.querySelectorAll("[data-act]").forEach(function (b) { b.onclick = function () { actions[b.dataset.act](); }; });
  document.addEventListener("keydown", function (e) {
    if (e.target.tagName === "SELECT") return;
    if (e.key === "PageDown" || e.key === "PageUp") {
      page(e.key === "PageDown" ? 40 : -40);
    } else if (keys[e.key]) actions[keys[e.key]]();
    else return;
    e.preventDefault();
  });
  window.addEventListener("hashchange", anchor);
  window.addEventListener("resize", function () {
    plots.forEach(function (one) { one.plot.setSize({ width: $("lanes").clientWidth, height: LANE_HEIGHT }); });
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  anchor();
}
// index.html#finding_3 and index.html#at_1000us_2500us open that window, as in the names of windows for other viewers
function anchor() {
  var text = decodeURIComponent(location.hash.slice(1)), at = /^at_(\d+)us_(\d+)us$/.exec(text);
  var finding = index.findings.find(function (f) { return f.name === text; });
  if (finding) go(finding.begin, finding.end, finding.name);
  else if (at && +at[2] > +at[1]) go(at[1] * 1e3, at[2] * 1e3, "window");
}
