// The explorer's tiles: what is here, what comes, what goes; and the values that a view needs of them.
var X0 = 84, RIGHT = 10, MOST_LOADED = 24e6, MOST_DRAWN = 60000, LANE_HEIGHT = 62, MOST_LANES = 12;
var VIRIDIS = ["#f2e51d", "#a2d838", "#57c564", "#2aaf7f", "#1f968b", "#287a8e", "#355e8d", "#433e85", "#440f54"];
var CLASSES = { compute: "#3b6fb6", communication: "#e08214", memory: "#1b9e8a" };
var INKS = ["#3b6fb6", "#e08214", "#1b9e8a", "#9467bd", "#57606a", "#a34f06"];
var index, view, history = [], cache = new Map(), pending = new Map(), loaded = 0, path = [], offset = 0, plots = [], device = -1, picked = null;
var began = null, steps = [], drawn = [], name = "whole run";
// a colour of the theme, light or dark
function ink(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name); }
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
  var text = (ns / u[1]).toFixed(Math.max(0, Math.ceil(-Math.log10(step / u[1]) - 1e-9)));
  return (Number(text) === 0 ? text.replace("-", "") : text) + " " + u[0]; // the first call lies before the first launch
}

// tiles: what is here, what comes, what goes
function tile(key, text) {
  var raw = atob(text), bytes = new Uint8Array(raw.length);
  for (var i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  new Response(new Response(bytes).body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer().then(function (buffer) {
    pending.delete(key);
    if (cache.has(key)) return;
    cache.set(key, key[0] === "n" ? new Float64Array(numbers(buffer, 8)) : new Float32Array(numbers(buffer, 4)));
    loaded += buffer.byteLength;
    schedule();
  });
}
// in a tile all first bytes stand together, then all second ones
function numbers(buffer, size) {
  var held = new Uint8Array(buffer), bytes = new Uint8Array(held.length), count = held.length / size;
  for (var b = 0, at = 0; b < size; b++) for (var i = 0; i < count; i++) bytes[i * size + b] = held[at++];
  return bytes.buffer;
}
function get(key) {
  var held = cache.get(key);
  if (held) { cache.delete(key); cache.set(key, held); return held; }  // the map's order is that of use
  if (!pending.has(key)) {
    pending.set(key, true);
    var s = make("script");
    s.src = "tiles/" + key.replace("_a_", "_0_") + ".js";  // all devices together stand in the file of the first block
    s.onload = function () { s.remove(); };
    s.onerror = function () { s.remove(); pending.delete(key); schedule(); };
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
// the block and row of a device's place, -1 for all devices together
function blockOf(row) { return row < 0 ? "a" : Math.floor(row / index.block_rows); }
function rowOf(row) { return row < 0 ? 0 : row % index.block_rows; }
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
// how many devices are recorded, if only for a part of it, in a cell: those that began before its end and had not ended before it
function recordedIn(cell, width) {
  function below(values, bound) {
    var low = 0, high = values.length;
    while (low < high) { var m = (low + high) >> 1; if (values[m] < bound) low = m + 1; else high = m; }
    return low;
  }
  return below(index.recorded[0], (cell + 1) * width) - below(index.recorded[1], cell * width + 1);
}
