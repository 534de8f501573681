// The explorer's launches: bars of each stream, and tables from class to kernel to configuration to launch.
var LIST_HINT = "Zoom in until at most 200 launches are in view, or choose a class and a kernel above: each launch is then listed here.";
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
  var a = Math.max(0, Math.floor(view[0] / 1e3)), b = Math.ceil(view[1] / 1e3), name = "at_" + a + "us_" + b + "us";
  return "Write this window for another viewer: causeway windows " + index.dataset + " " + name + " --out DIR, with the folder of the analysis; or snakemake results/" +
    index.dataset + "/windows/" + name + ".json.gz";
}
function part(launch, depth) {
  var c = index.configurations[launch[2]];
  return depth === 0 ? c[1] : depth === 1 ? c[0] : c[2] || "(one shape)";
}
function chosen(launch) { return !path.length || path.every(function (name, depth) { return part(launch, depth) === name; }); }
function isPicked(l) { return picked !== null && l[0] === picked[0] && l[3] === picked[3]; }
function drawGantt(needed) {
  var got = launchesInView(needed), lanes = [], only = index.rows[device];
  var found = (got.found || []).filter(function (l) { var at = index.lanes[l[3]]; return !only || (at[0] === only[1] && at[1] === only[2]); });
  drawn = [];
  found.forEach(function (l) { if (lanes.indexOf(l[3]) < 0) lanes.push(l[3]); });
  lanes.sort(function (a, b) { return a - b; });
  var count = Math.min(lanes.length, 24), high = Math.max(12, Math.min(22, 260 / Math.max(count, 1))), c = canvas("gantt", Math.max(count * high, 30) + 22);
  lanes.slice(0, count).forEach(function (lane, r) {
    var l = index.lanes[lane];
    c.g.fillStyle = ink("ink");
    c.g.fillText("r" + l[0] + " d" + l[1] + " s" + l[2], 4, r * high + high / 2, X0 - 8);
  });
  var held = null, till = [], last = [];  // of each lane, where what is drawn ends, and its colour
  found.forEach(function (l) {
    var r = lanes.indexOf(l[3]);
    if (r >= count) return;
    var a = Math.max(X0, c.x(l[0])), b = Math.min(c.width - RIGHT, c.x(l[0] + l[1])), mine = chosen(l);
    var own = (mine ? "" : "pale ") + CLASSES[index.configurations[l[2]][1]];
    drawn.push([a, Math.max(b, a + 2), r * high, (r + 1) * high, l]);
    if (b < till[r] && own === last[r] && !isPicked(l) && !slow(l)) return;  // within a pixel that has this colour
    if (own !== held) { c.g.globalAlpha = mine ? 1 : 0.18; c.g.fillStyle = own.replace("pale ", ""); held = own; }
    c.g.fillRect(a, r * high + 1, Math.max(b - a - (b - a > 3 ? 1 : 0), 0.8), high - 3);  // a gap, so that neighbours are two
    till[r] = Math.max(b, a + 0.8);
    last[r] = own;
    if (isPicked(l) || slow(l)) {
      c.g.strokeStyle = ink(isPicked(l) ? "ink" : "lowers");
      c.g.lineWidth = 2;
      c.g.strokeRect(a + 1, r * high + 1, Math.max(b - a - 2, 1), high - 4);
    }
    if (b - a > 46 && mine) {
      c.g.fillStyle = "#fff";
      c.g.save();
      c.g.beginPath();
      c.g.rect(a, r * high, b - a, high);
      c.g.clip();
      c.g.fillText(index.configurations[l[2]][4], a + 3, r * high + high / 2);
      c.g.restore();
      held = null;
    }
  });
  c.g.globalAlpha = 1;
  $("partial").textContent = (index.whole ? "" : "Only launches of the stretches that vary most are on this page, " +
    index.launches.length + " pieces; the lanes above are of all " + index.total.toLocaleString("en") + ". ") + command();
  if (got.why) { c.g.fillStyle = ink("muted"); c.g.fillText(got.why, X0, 14); }
  axis(c, Math.max(count * high, 30));
  drawTable(found, got.why);
}
// meaning: class, kernel, configuration, launch
function drawTable(found, why) {
  var box = $("kernels"), list = $("list");
  box.replaceChildren();
  list.replaceChildren();
  if (!found.length) {
    box.appendChild(make("p", why || "No launch here."));
    list.appendChild(make("p", LIST_HINT));
    return;
  }
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
        row(rows, [moment(l[0], Math.max(span() / 1000, 1)), time(l[1]), (away < 0 ? "-" : "+") + time(Math.abs(away)), index.configurations[l[2]][4].slice(0, 24)],
          function () { open(l); });
      });
  } else list.appendChild(make("p", LIST_HINT));
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
  return c[0] + " | " + c[1] + " | " + c[2] + " | rank " + at[0] + ", device " + at[1] + ", stream " + at[2] + " | begins " + moment(l[0], 1) +
    ", lasts " + l[1] + " ns, mean of its configuration " + c[3] + " ns" + (slow(l) ? " | slower than that by: " + slow(l) : "");
}
function slow(l) { return index.slow[index.lanes[l[3]][0] + " " + l[0] + " " + l[1]]; }
function open(l) {
  var pad = Math.max(l[1], 500);
  picked = l;
  go(l[0] - pad / 2, l[0] + l[1] + pad / 2, "one launch");
  $("hover").textContent = describe(l);
}

function under(e) {
  var box = $("gantt").getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
  var hit = drawn.filter(function (d) { return x >= d[0] - 1 && x <= d[1] + 1 && y >= d[2] && y < d[3]; });
  return hit.length ? hit[hit.length - 1][4] : null;
}
