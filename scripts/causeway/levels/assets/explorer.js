// The explorer: one view of time, shown as lanes, as ranks and as launches. Tiles are scripts beside this page, loaded when a view needs them.
"use strict";
var CW = (function () {
  var X0 = 84, RIGHT = 10, MOST_LOADED = 24e6, MOST_DRAWN = 60000, LANE_HEIGHT = 62;
  var VIRIDIS = ["#f2e51d", "#a2d838", "#57c564", "#2aaf7f", "#1f968b", "#287a8e", "#355e8d", "#433e85", "#440f54"];
  var CLASSES = { compute: "#3b6fb6", communication: "#e08214", memory: "#1b9e8a" };
  var LANES = [
    ["Compute kernels at once", ["active compute kernels"]],
    ["Communication: all, exposed", ["communication", "exposed communication"]],
    ["Copies: to device, to host", ["host to device", "device to host"]],
    ["Efficiency: time in compute kernels", ["compute"]],
    ["Variability: mean |deviation|, ns", ["variability"]],
    ["Samples (shares)", []]
  ];
  var INKS = ["#3b6fb6", "#e08214", "#1b9e8a", "#9467bd", "#57606a", "#a34f06"];
  var index, view, history = [], cache = new Map(), pending = new Map(), loaded = 0, path = [], offset = 0, plots = [];
  var began = null, steps = [], drawn = [], name = "whole run";
  function $(id) { return document.getElementById(id); }
  function make(tag, text, kind) {
    var e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    if (kind) e.className = kind;
    return e;
  }
  function time(ns) {
    var a = Math.abs(ns), u = a >= 1e9 ? ["s", 1e9] : a >= 1e6 ? ["ms", 1e6] : a >= 1e3 ? ["µs", 1e3] : ["ns", 1];
    return Number((ns / u[1]).toPrecision(4)) + " " + u[0];
  }
  // a point in time, with as many digits as a step needs
  function moment(ns, step) {
    var a = Math.max(Math.abs(view[0]), Math.abs(view[1])), u = a >= 1e9 ? ["s", 1e9] : a >= 1e6 ? ["ms", 1e6] : a >= 1e3 ? ["µs", 1e3] : ["ns", 1];
    return (ns / u[1]).toFixed(Math.max(0, Math.ceil(-Math.log10(step / u[1]) - 1e-9))) + " " + u[0];
  }

  // tiles: what is here, what comes, what goes
  function tile(key, text) {
    var raw = atob(text), bytes = new Uint8Array(raw.length);
    for (var i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer().then(function (buffer) {
      pending.delete(key);
      cache.set(key, key[0] === "n" ? new Float64Array(buffer) : new Float32Array(buffer));
      loaded += buffer.byteLength;
      schedule();
    });
  }
  function get(key) {
    var held = cache.get(key);
    if (held) { cache.delete(key); cache.set(key, held); return held; }  // the map's order is that of use
    if (!pending.has(key)) {
      pending.set(key, true);
      var s = make("script");
      s.src = "tiles/" + key + ".js";
      s.onload = function () { s.remove(); };
      s.onerror = function () { s.remove(); pending.delete(key); };
      document.head.appendChild(s);
    }
    return null;
  }
  function trim(needed) {
    cache.forEach(function (held, key) {
      if (loaded > MOST_LOADED && !needed.has(key)) { cache.delete(key); loaded -= held.byteLength; }
    });
  }

  // levels
  function span() { return view[1] - view[0]; }
  function levelFor(width) {
    for (var i = index.levels.length - 1; i >= 0; i--) if (width / index.levels[i].width <= 900) return i;
    return 0;
  }
  // values of a metric of a row ("a": all devices) in view: from the level that fits or, until it is here, from a coarser one that is
  function cellsOf(level, block, needed) {
    for (var i = level; i >= 0; i--) {
      var width = index.levels[i].width, size = width * index.tile_cells, whole = true, parts = [];
      for (var t = Math.floor(view[0] / size); t <= Math.floor(view[1] / size); t++) {
        if (!index.levels[i].set.has(t)) continue;
        var key = i + "_" + block + "_" + t;
        needed.add(key);
        var held = i === level ? get(key) : cache.get(key);
        if (held) parts.push([t, held]); else whole = false;
      }
      if (whole) return { width: width, parts: parts };
    }
    return { width: index.levels[level].width, parts: [] };
  }
  function rowsIn(block) { return block === "a" ? 1 : Math.min(index.block_rows, index.rows.length - block * index.block_rows); }
  function series(found, block, row, metric) {
    var xs = [], ys = [], n = index.tile_cells, rows = rowsIn(block);
    found.parts.forEach(function (part) {
      var base = (metric * rows + row) * n, first = part[0] * n;
      var from = Math.max(0, Math.floor(view[0] / found.width) - first - 1), to = Math.min(n, Math.ceil(view[1] / found.width) - first + 1);
      for (var c = from; c < to; c++) {
        xs.push(((first + c + 0.5) * found.width) / 1e9);
        var v = part[1][base + c];
        ys.push(v === v ? v : null);
      }
    });
    return [xs, ys];
  }
  function number(name) { return index.metrics.findIndex(function (m) { return m.name === name; }); }

  // lanes: uPlot, one chart each, the same time below all of them
  function makeLanes() {
    LANES[5][1] = index.metrics.map(function (m) { return m.name; }).filter(function (n) { return /_ratio$/.test(n); }).slice(0, 5);
    plots = LANES.filter(function (lane) { return lane[1].some(function (n) { return number(n) >= 0; }); }).map(function (lane) {
      var box = make("div", undefined, "lane"), names = lane[1].filter(function (n) { return number(n) >= 0; });
      box.appendChild(make("div", lane[0] + (names.length > 2 ? ": " + names.join(", ").replace(/_ratio/g, "") : ""), "name"));
      $("lanes").appendChild(box);
      var options = {
        width: box.clientWidth, height: LANE_HEIGHT, legend: { show: false }, padding: [4, RIGHT, 6, 0],
        cursor: { sync: { key: "cw" }, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
        scales: { x: { time: false, auto: false }, y: { range: function (u, low, high) { return [0, high > 0 ? high * 1.08 : 1]; } } },
        axes: [{ show: false }, { size: X0, ticks: { show: false }, splits: function (u, a, low, high) { return [0, high / 1.08]; },
                 values: function (u, s) { return s.map(function (v) { return !v ? "0" : /ns$/.test(lane[0]) ? time(v) : String(Number(v.toPrecision(3))); }); } }],
        series: [{}].concat(names.map(function (n, i) {
          return { stroke: INKS[i], width: 1.4, dash: i ? [4 + 2 * i, 3] : undefined, spanGaps: /^Samples/.test(lane[0]), points: { show: false } };
        })),
        hooks: { setSelect: [function (u) {
          if (u.select.width < 3) return;
          var a = u.posToVal(u.select.left, "x") * 1e9, b = u.posToVal(u.select.left + u.select.width, "x") * 1e9;
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          go(a, b);
        }] }
      };
      var plot = new uPlot(options, [[0]].concat(names.map(function () { return [null]; })), box);
      plot.over.addEventListener("wheel", wheel, { passive: false });
      return { plot: plot, names: names };
    });
  }
  function drawLanes(level, needed) {
    var found = cellsOf(level, "a", needed);
    plots.forEach(function (one) {
      var data = [];
      one.names.forEach(function (n) {
        var s = series(found, "a", 0, number(n));
        if (!data.length) data.push(s[0]);
        data.push(s[1]);
      });
      one.plot.batch(function () {
        one.plot.setData(data, true);
        one.plot.setScale("x", { min: view[0] / 1e9, max: view[1] / 1e9 });
      });
    });
  }

  // ranks as rows
  function canvas(id, height) {
    var c = $(id), ratio = window.devicePixelRatio || 1, width = c.clientWidth;
    if (c.width !== Math.round(width * ratio) || c.height !== Math.round(height * ratio)) {
      c.width = Math.round(width * ratio);
      c.height = Math.round(height * ratio);
      c.style.height = height + "px";
    }
    var g = c.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    g.textBaseline = "middle";
    return { g: g, width: width, height: height, x: function (ns) { return X0 + ((ns - view[0]) / span()) * (width - X0 - RIGHT); } };
  }
  function shown() { return Math.min(index.rows.length - offset, 40); }
  function drawRows(level, needed) {
    var metric = +$("metric").value, count = shown(), high = Math.max(8, Math.min(20, 320 / count)), c = canvas("rows", count * high + 22);
    var largest = 0, drawnRows = [];
    for (var r = 0; r < count; r++) {
      var block = Math.floor((r + offset) / index.block_rows), found = cellsOf(level, block, needed);
      var s = series(found, block, (r + offset) % index.block_rows, metric);
      s[1].forEach(function (v) { if (v > largest) largest = v; });
      drawnRows.push([s, found.width]);
    }
    drawnRows.forEach(function (one, r) {
      var label = index.rows[r + offset];
      c.g.fillStyle = "#1b1f24";
      if (high >= 12 || r % 2 === 0) c.g.fillText("rank " + label[1] + (label[2] ? " dev " + label[2] : ""), 4, r * high + high / 2, X0 - 8);
      one[0][0].forEach(function (x, i) {
        var v = one[0][1][i];
        if (v === null) return;
        c.g.fillStyle = VIRIDIS[largest ? Math.min(8, Math.floor((v / largest) * 9)) : 0];
        var a = Math.max(X0, c.x(x * 1e9 - one[1] / 2)), b = Math.min(c.width - RIGHT, c.x(x * 1e9 + one[1] / 2));
        if (b > a) c.g.fillRect(a, r * high, Math.max(b - a, 0.7), high - 1);
      });
    });
    axis(c, count * high);
    var m = index.metrics[metric];
    $("rowtitle").textContent = "Ranks over time: " + m.name + " (" + m.meaning + ")";
    $("legend").textContent = "Light is 0, dark is " + (m.unit === "ns" ? time(largest) : Number(largest.toPrecision(3)) + " " + m.unit) + "; white: nothing there. " +
      (index.rows.length > count ? "Rows " + (offset + 1) + " to " + (offset + count) + " of " + index.rows.length + " (page keys)." : "");
  }
  function axis(c, y) {
    var step = Math.pow(10, Math.floor(Math.log10(span() / 3)));
    while (span() / step > 7) step *= 2;
    c.g.fillStyle = "#57606a";
    for (var t = Math.ceil(view[0] / step) * step; t <= view[1]; t += step) {
      c.g.fillRect(c.x(t), y, 1, 4);
      if (c.x(t) < c.width - 84) c.g.fillText(moment(t, step), c.x(t) + 3, y + 11);
    }
  }

  // launches
  function launchesInView(needed) {
    var within = index.launches.filter(function (l) { return l[1] < view[1] && l[2] > view[0]; });
    var all = within.reduce(function (n, l) { return n + l[3]; }, 0);
    if (!within.length) return { why: index.whole ? "No launch here." : "Launches of this time are not on the page." };
    if (all > MOST_DRAWN * 2 && within.length > 6) return { why: "Zoom in to see launches one by one." };
    var parts = [], whole = true;
    within.forEach(function (l) {
      needed.add(l[0]);
      var held = get(l[0]);
      if (held) parts.push(held); else whole = false;
    });
    if (!whole && !parts.length) return { why: "Loading ..." };
    var found = [];
    parts.forEach(function (a) {
      var n = a.length / 4;
      for (var i = 0; i < n; i++) if (a[i] < view[1] && a[i] + a[n + i] >= view[0]) found.push([a[i], a[n + i], a[2 * n + i], a[3 * n + i]]);
    });
    if (found.length > MOST_DRAWN) return { why: "Zoom in to see launches one by one." };
    return { found: found };
  }
  function command() {
    var a = Math.max(0, Math.floor(view[0] / 1e3)), b = Math.ceil(view[1] / 1e3);
    return "Write this window for another viewer: snakemake results/" + index.dataset + "/windows/at_" + a + "us_" + b + "us.json.gz";
  }
  function part(launch, depth) {
    var c = index.configurations[launch[2]];
    return depth === 0 ? c[1] : depth === 1 ? c[0] : c[2] || "(one shape)";
  }
  function chosen(launch) { return path.every(function (name, depth) { return part(launch, depth) === name; }); }
  function drawGantt(needed) {
    var got = launchesInView(needed), lanes = [], found = got.found || [];
    drawn = [];
    found.forEach(function (l) { if (lanes.indexOf(l[3]) < 0) lanes.push(l[3]); });
    lanes.sort(function (a, b) { return a - b; });
    var count = Math.min(lanes.length, 24), high = Math.max(12, Math.min(22, 260 / Math.max(count, 1))), c = canvas("gantt", Math.max(count * high, 30) + 22);
    lanes.slice(0, count).forEach(function (lane, r) {
      var l = index.lanes[lane];
      c.g.fillStyle = "#1b1f24";
      c.g.fillText("r" + l[0] + " d" + l[1] + " s" + l[2], 4, r * high + high / 2, X0 - 8);
    });
    found.forEach(function (l) {
      var r = lanes.indexOf(l[3]);
      if (r >= count) return;
      var a = Math.max(X0, c.x(l[0])), b = Math.min(c.width - RIGHT, c.x(l[0] + l[1])), mine = chosen(l);
      c.g.globalAlpha = mine ? 1 : 0.18;
      c.g.fillStyle = CLASSES[index.configurations[l[2]][1]];
      c.g.fillRect(a, r * high + 1, Math.max(b - a, 0.8), high - 3);
      if (b - a > 46 && mine) {
        c.g.fillStyle = "#fff";
        c.g.save();
        c.g.beginPath();
        c.g.rect(a, r * high, b - a, high);
        c.g.clip();
        c.g.fillText(index.configurations[l[2]][4], a + 3, r * high + high / 2);
        c.g.restore();
      }
      drawn.push([a, Math.max(b, a + 2), r * high, (r + 1) * high, l]);
    });
    c.g.globalAlpha = 1;
    $("partial").textContent = (index.whole ? "" : "Only launches of the stretches that vary most are on this page, " +
      index.launches.length + " pieces; the lanes above are of all " + index.total + ". ") + command();
    if (got.why) { c.g.fillStyle = "#57606a"; c.g.fillText(got.why, X0, 14); }
    axis(c, Math.max(count * high, 30));
    drawTable(found, got.why);
  }
  // meaning: class, kernel, configuration, launch
  function drawTable(found, why) {
    var box = $("kernels"), list = $("list");
    box.replaceChildren();
    list.replaceChildren();
    if (!found.length) { box.appendChild(make("p", why || "No launch here.")); return; }
    var mine = found.filter(chosen), depth = Math.min(path.length, 3), groups = new Map();
    var nav = make("p");
    ["all classes"].concat(path).forEach(function (name, d) {
      var b = make("button", name.slice(0, 40));
      b.onclick = function () { path = path.slice(0, d); draw(); };
      nav.appendChild(b);
    });
    box.appendChild(nav);
    if (depth < 3) {
      mine.forEach(function (l) {
        var key = part(l, depth), g = groups.get(key) || [0, 0, 0];
        g[0] += 1; g[1] += l[1]; g[2] += Math.abs(l[1] - index.configurations[l[2]][3]);
        groups.set(key, g);
      });
      var body = head(box, [["class", "kernel", "configuration"][depth], "launches", "time", "mean dev."]);
      Array.from(groups).sort(function (a, b) { return b[1][1] - a[1][1]; }).slice(0, 60).forEach(function (entry) {
        row(body, [entry[0], String(entry[1][0]), time(entry[1][1]), time(entry[1][2] / entry[1][0])], function () { path.push(entry[0]); draw(); });
      });
    }
    if (depth > 1 || mine.length <= 200) {
      var rows = head(list, ["begins", "lasts", "deviation", ""]);
      mine.slice().sort(function (a, b) { return Math.abs(b[1] - index.configurations[b[2]][3]) - Math.abs(a[1] - index.configurations[a[2]][3]); })
        .slice(0, 100).forEach(function (l) {
          var away = l[1] - index.configurations[l[2]][3];
          row(rows, [time(l[0]), time(l[1]), (away < 0 ? "-" : "+") + time(Math.abs(away)), index.configurations[l[2]][4].slice(0, 24)],
            function () { open(l); });
        });
    }
  }
  function head(box, names) {
    var table = make("table"), tr = table.createTHead().insertRow(), body = table.createTBody();
    names.forEach(function (n, i) { tr.appendChild(make("th", n, i ? "n" : "")); });
    box.appendChild(table);
    return body;
  }
  function row(body, texts, act) {
    var tr = body.insertRow();
    tr.tabIndex = 0;
    texts.forEach(function (t, i) { var td = tr.insertCell(); td.textContent = t; td.title = t; td.className = i ? "n" : "k"; });
    tr.onclick = act;
    tr.onkeydown = function (e) { if (e.key === "Enter") act(); };
  }
  function describe(l) {
    var c = index.configurations[l[2]], at = index.lanes[l[3]];
    return c[0] + " | " + c[1] + " | " + c[2] + " | rank " + at[0] + ", device " + at[1] + ", stream " + at[2] + " | begins " + time(l[0]) +
      ", lasts " + l[1] + " ns, mean of its configuration " + c[3] + " ns";
  }
  function open(l) {
    var pad = Math.max(l[1], 500);
    go(l[0] - pad / 2, l[0] + l[1] + pad / 2, "one launch");
    $("hover").textContent = describe(l);
  }

  // moving
  function go(a, b, label) {
    if (b - a < 200) { var m = (a + b) / 2; a = m - 100; b = m + 100; }
    if (b - a > index.span * 1.02) { a = index.low; b = index.span; }
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

  var waiting = false;
  function schedule() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(function () { waiting = false; draw(); });
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
    index.low = 0;
    index.whole = index.launches.reduce(function (n, l) { return n + l[3]; }, 0) >= index.total;
    index.levels.forEach(function (l) { l.set = new Set(l.tiles); });
    view = [0, index.span];
    if (!index.levels.length) { $("where").textContent = "This dataset has no launches with times."; return; }
    index.metrics.forEach(function (m, i) { var o = make("option", m.name); o.value = i; $("metric").appendChild(o); });
    $("metric").value = Math.max(0, number("variability"));
    $("metric").onchange = draw;
    index.findings.slice(0, 40).forEach(function (f) {
      var li = make("li"), b = make("button", f.sentence);
      b.onclick = function () { go(f.begin, f.end, f.name); };
      li.append(b, make("span", " " + (f.verdict || ""), "verdict"));
      $("findings").appendChild(li);
    });
    if (!index.findings.length) $("findings").appendChild(make("li", "None with a place in time."));
    makeLanes();
    ["rows", "gantt"].forEach(function (id) { $(id).addEventListener("wheel", wheel, { passive: false }); });
    $("rows").onclick = function (e) {
      var box = this.getBoundingClientRect(), share = (e.clientX - box.left - X0) / (box.width - X0 - RIGHT);
      if (share < 0 || share > 1) return;
      var at = view[0] + share * span(), half = span() / 64, r = Math.floor((e.clientY - box.top) / Math.max(8, Math.min(20, 320 / shown())));
      var label = index.rows[r + offset];
      go(at - half, at + half, label ? "rank " + label[1] : "");
    };
    $("gantt").onclick = function (e) { var l = under(e); if (l) open(l); };
    $("gantt").onmousemove = function (e) { var l = under(e); if (l) $("hover").textContent = describe(l); };
    document.querySelectorAll("[data-act]").forEach(function (b) { b.onclick = function () { actions[b.dataset.act](); }; });
    document.addEventListener("keydown", function (e) {
      if (e.target.tagName === "SELECT") return;
      if (e.key === "PageDown" || e.key === "PageUp") {
        offset = Math.min(Math.max(0, offset + (e.key === "PageDown" ? 40 : -40)), Math.max(0, index.rows.length - 1));
        draw();
      } else if (keys[e.key]) actions[keys[e.key]]();
      else return;
      e.preventDefault();
    });
    window.addEventListener("resize", function () {
      plots.forEach(function (one) { one.plot.setSize({ width: $("lanes").clientWidth, height: LANE_HEIGHT }); });
      draw();
    });
    draw();
  }
  function under(e) {
    var box = $("gantt").getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    var hit = drawn.filter(function (d) { return x >= d[0] - 1 && x <= d[1] + 1 && y >= d[2] && y < d[3]; });
    return hit.length ? hit[hit.length - 1][4] : null;
  }
  return {
    start: start, tile: tile,
    state: function () { return { view: view, steps: steps, loaded: loaded, pending: pending.size, drawn: drawn, path: path, index: index }; }
  };
})();
