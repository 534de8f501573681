// The explorer's lanes: one chart each (uPlot), the same time below all of them.
var LANES = [
  ["Compute kernels at once", ["active compute kernels"]],
  ["Communication", ["communication", "exposed communication"]],
  ["Ranks inside a collective (their communication kernels)", ["communication"], "ranks"],
  ["Copies at once", ["host to device", "device to host", "on device", "memory sets"]],
  ["Efficiency: time in compute kernels", ["compute"]],
  ["Variability: mean |deviation|", ["variability"]],
  ["Critical path", ["kernel", "collective", "copy", "launch", "host", "wait"].map(function (k) { return "critical path: " + k; }), "stacked"]
];
var STACK_INKS = ["#3b6fb6", "#e08214", "#1b9e8a", "#9467bd", "#d4b13f", "#b0b7bf"];
// sampled metrics by what they are of: shares of one thing share a lane, all others have lanes of their own
var SAMPLES = [
  ["SM and tensor", /^(?!.*(dram|nvlink|pcie)).*(sm|tensor|gpu|gr|warp|issue).*_ratio$/],
  ["DRAM", /dram.*_ratio$/],
  ["NVLink", /nvlink.*_ratio$/],
  ["PCIe", /pcie.*_ratio$/],
  ["Shares", /_ratio$/]
];
function sampleLanes() {
  var left = index.metrics.slice(index.own_from).map(function (m) { return m.name; }), found = [];
  SAMPLES.forEach(function (group) {
    var mine = left.filter(function (n) { return group[1].test(n); });
    left = left.filter(function (n) { return mine.indexOf(n) < 0; });
    while (mine.length) found.push(["Sampled, " + group[0] + (mine.length > 1 ? "" : ": " + mine[0].replace(/_ratio$/, "")), mine.splice(0, 4)]);
  });
  return found.concat(left.map(function (n) { return ["Mean of " + n, [n]]; }));
}
// a metric's value with its unit, as axes and legends say it; `counted`: what a lane counts instead. What runs at once
// is said in the lane's name, as the axis has no room for it
function amount(name, value, counted) {
  var unit = counted || index.metrics[number(name)].unit;
  if (unit === "ns" || /_ns$/.test(name)) return time(value);
  if (/_w$/.test(name)) return Number(value.toPrecision(3)) + " W";
  if (/_celsius$/.test(name)) return Number(value.toPrecision(3)) + " °C";
  if (/_hz$/.test(name)) return Number((value / 1e6).toPrecision(4)) + " MHz";
  if (unit === "share" || (!unit && /_ratio$/.test(name))) return Number((100 * value).toPrecision(3)) + " %";
  return Number(value.toPrecision(3)) + (unit ? " " + (value === 1 ? unit.replace(/^(rank|device)s$/, "$1") : unit) : "");
}
var dragged = null;  // the lane in which the pointer went down
function makeLanes() {
  var known = LANES.concat(sampleLanes()).filter(function (lane) { return (lane[2] !== "ranks" || index.rows.length > 1) && lane[1].some(function (n) { return number(n) >= 0; }); });
  function isEmpty(lane) { return lane[1].every(function (n) { return number(n) < 0 || !index.metrics[number(n)].seen; }); }
  var empty = known.filter(isEmpty), samples = 0;
  var shown = known.filter(function (lane) { return !isEmpty(lane); });
  var beyond = shown.filter(function (lane) { return LANES.indexOf(lane) < 0 && ++samples > MOST_LANES; });
  plots = shown.filter(function (lane) { return beyond.indexOf(lane) < 0; }).map(function (lane) {
    var stacked = lane[2] === "stacked", box = make("div", undefined, "lane"), names = lane[1].filter(function (n) { return number(n) >= 0; });
    var counted = lane[2] === "ranks" && (index.rows.every(function (row, r) { return !r || row[1] !== index.rows[r - 1][1]; }) ? "ranks" : "devices");
    var title = make("div", counted === "devices" ? lane[0].replace("Ranks", "Devices") : lane[0], "name");
    if (names.length > 1) names.forEach(function (n, i) {
      var key = make("span", undefined, "key");
      key.style.borderTop = stacked ? "9px solid " + STACK_INKS[i] : "2px " + (i ? i > 1 ? "dotted " : "dashed " : "solid ") + INKS[i];
      title.append(key, n.replace(/_ratio$|^critical path: /g, ""));
    });
    box.appendChild(title);
    $("lanes").appendChild(box);
    var options = {
      width: box.clientWidth, height: LANE_HEIGHT, legend: { show: false }, padding: [4, RIGHT, 6, 0],
      cursor: { sync: { key: "cw" }, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      scales: { x: { time: false, auto: false }, y: { range: function (u, low, high) { return [0, (high > 0 ? high : 1) * 1.08]; } } },
      axes: [{ show: false }, { size: X0, ticks: { show: false }, stroke: function () { return ink("muted"); }, grid: { stroke: function () { return ink("line"); } }, splits: function (u, a, low, high) { return [0, high / 1.08]; },
               values: function (u, s) { return s.map(function (v) { return !v ? "0" : amount(names[0], v, counted).replace(/ at once$/, ""); }); } }],
      series: [{}].concat(stacked ? names.map(function (n, i) {  // sums from the last one on, the largest first
        return { fill: STACK_INKS[i], width: 0, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) };
      }) : names.map(function (n, i) {
        return { stroke: INKS[i], width: 1.4, dash: i ? i > 1 ? [2, 2 * i] : [7, 4] : undefined, spanGaps: /^Sampled|^Mean of/.test(lane[0]), points: { show: false } };
      })),
      hooks: { setSelect: [function (u) {
        var width = u.select.width, a = u.posToVal(u.select.left, "x") * 1e9, b = u.posToVal(u.select.left + width, "x") * 1e9;
        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        // the lanes share their cursor, so that each of them has the selection of a drag: only the lane that was dragged over zooms
        if (u !== dragged) return;
        dragged = null;
        if (width >= 3) go(a, b);
      }] }
    };
    var plot = new uPlot(options, [[0]].concat(names.map(function () { return [null]; })), box);
    plot.over.addEventListener("wheel", wheel, { passive: false });
    plot.over.addEventListener("mousedown", function () { dragged = plot; });
    return { plot: plot, names: names, stacked: stacked, isCount: lane[2] === "ranks" };
  });
  function say(why, lanes) {
    var names = lanes.slice(0, MOST_LANES).map(function (lane) { return lane[0]; }), more = lanes.length - names.length;
    if (lanes.length) $("lanes").appendChild(make("p", "Not drawn, " + why + ": " + names.join("; ") + (more ? "; and " + more + " more" : "") + ".", "empty"));
  }
  say("0 throughout the run", empty);
  say("as " + MOST_LANES + " lanes of samples are", beyond);
}
function drawLanes(level, needed) {
  var block = blockOf(device), found = cellsOf(level, block, needed);
  plots.forEach(function (one) {
    var data = [];
    one.names.forEach(function (n) {
      var s = series(found, block, rowOf(device), number(n));
      if (!data.length) data.push(s[0]);
      data.push(s[1]);
    });
    if (one.isCount && device < 0) data[1] = data[1].map(function (v, i) { return v === null ? v : v * recordedIn(Math.round(data[0][i] * 1e9 / found.width - 0.5), found.width); });
    if (one.stacked) data[0] = data[0].map(function (x) { return x - found.width / 2e9; });  // a step begins with its cell
    if (one.stacked) for (var k = data.length - 2; k > 0; k--) data[k] = data[k].map(function (v, i) { return v === null ? v : v + data[k + 1][i]; });
    one.plot.batch(function () {
      one.plot.setData(data, true);
      one.plot.setScale("x", { min: view[0] / 1e9, max: view[1] / 1e9 });
    });
  });
}
