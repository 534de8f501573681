// The explorer's map of ranks as rows, and the axis of time below it.
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
  var values = [], drawnRows = [];
  for (var r = 0; r < count; r++) {
    var block = blockOf(r + offset), found = cellsOf(level, block, needed);
    var s = series(found, block, rowOf(r + offset), metric);
    s[1].forEach(function (v) { if (v !== null) values.push(v); });
    drawnRows.push([s, found.width]);
  }
  values = Float64Array.from(values).sort();
  var largest = Math.max(0, values[values.length - 1] || 0), top = darkest(values, largest);
  drawnRows.forEach(function (one, r) {
    var label = index.rows[r + offset];
    c.g.fillStyle = ink("ink");
    if (high >= 12 || r % 2 === 0) c.g.fillText((r + offset === device ? "▸ " : "") + titleOf(label, " dev "), 4, r * high + high / 2, X0 - 8);
    var from = 0, to = 0, held = "";  // neighbours of one colour are one rectangle
    function fill() { if (to > from) { c.g.fillStyle = held; c.g.fillRect(from, r * high, Math.max(to - from, 0.7), high - 1); } }
    one[0][0].forEach(function (x, i) {
      var v = one[0][1][i];
      if (v === null) return;
      var own = VIRIDIS[top ? Math.min(8, Math.max(0, Math.floor((v / top) * 9))) : 0];
      var a = Math.max(X0, c.x(x * 1e9 - one[1] / 2)), b = Math.min(c.width - RIGHT, c.x(x * 1e9 + one[1] / 2));
      if (own !== held || a > to + 0.01) { fill(); from = a; held = own; }
      to = b;
    });
    fill();
  });
  if (!index.whole) {  // where launches stand on the page one by one
    c.g.fillStyle = ink("link");
    index.launches.forEach(function (l) {
      var a = Math.max(X0, c.x(l[1])), b = Math.min(c.width - RIGHT, c.x(l[2]));
      if (b > a) c.g.fillRect(a, count * high, Math.max(b - a, 1), 3);
    });
  }
  axis(c, count * high);
  var m = index.metrics[metric];
  $("rowtitle").textContent = "Ranks over time: " + m.name + " (" + m.meaning + ")";
  function said(v) { return amount(m.name, v); }
  var beyond = top < largest ? " or more (the largest is " + said(largest) + ")" : "";
  $("legend").textContent = "Light is 0, dark is " + said(top) + beyond + "; blank: nothing there. " +
    (index.rows.length > count ? "Rows " + (offset + 1) + " to " + (offset + count) + " of " + index.rows.length + "." : "") + (index.whole ? "" : " The line below: launches one by one.") + " A click on a name chooses that rank for the lanes and launches.";
}
// from where on cells are darkest: the largest value, but where that is far above nearly all, what one in a hundred exceeds
function darkest(sorted, largest) {
  var usual = sorted[Math.floor(0.99 * (sorted.length - 1))];
  return usual > 0 && largest > 2 * usual ? usual : largest;
}
function titleOf(label, middle) { return "rank " + label[1] + (label[2] ? middle + label[2] : ""); }
function page(step) {
  offset = Math.min(Math.max(0, offset + step), Math.max(0, index.rows.length - 1));
  draw();
}
// the lanes and launches of one device, or of all
function choose(row) {
  device = row;
  $("device").value = row;
  draw();
}
function axis(c, y) {
  var step = Math.pow(10, Math.floor(Math.log10(span() / 3)));
  while (span() / step > 7) step *= 2;
  c.g.fillStyle = ink("muted");
  for (var t = Math.ceil(view[0] / step) * step; t <= view[1]; t += step) {
    c.g.fillRect(c.x(t), y, 1, 4);
    if (c.x(t) < c.width - 84) c.g.fillText(moment(t, step), c.x(t) + 3, y + 11);
  }
}
