document.querySelectorAll('.map').forEach(function (map) {
  var svg = map.querySelector('svg'), out = map.querySelector('output'), facts = JSON.parse(svg.dataset.map);
  function place(event) {
    var box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    return [Math.floor(((event.clientX - box.left) * scale - facts.left) / facts.width),
      Math.floor(((event.clientY - box.top) * scale - facts.top) / facts.height)];
  }
  svg.addEventListener('click', function (event) {
    var at = place(event), begin = facts.windows[at[0]], end = facts.windows[at[0] + 1];
    var link = document.querySelector('a.away[href="' + svg.dataset.explorer + '"]');
    if (link && facts.rows[at[1]] && end !== undefined) { location.href = link.getAttribute('href') + '#at_' + begin + 'us_' + end + 'us'; }
  });
  svg.addEventListener('pointermove', function (event) {
    var at = place(event), column = at[0], line = facts.rows[at[1]];
    var inside = line && column >= 0 && column < facts.columns.length;
    out.textContent = inside ? line.name + ', ' + facts.columns[column] + ': ' + (line.cells[column] || 'no launches') : '';
  });
});
var queries = JSON.parse(document.getElementById('queries').textContent), panel = document.getElementById('query');
document.addEventListener('click', function (event) {
  var number = event.target.closest('data[data-query]');
  if (event.target.closest('#query button') || (!number && !event.target.closest('#query'))) { panel.hidden = true; }
  if (!number) { return; }
  var value = number.getAttribute('value');
  panel.querySelector('output').textContent = (value === null ? '' : value + ' = ') +
    queries[number.dataset.query] + ';\n(DuckDB, in the results folder)';
  panel.hidden = false;
});
document.addEventListener('keydown', function (event) { if (event.key === 'Escape') { panel.hidden = true; } });
function showTarget() {
  var there = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (var up = there; up; up = up.parentElement) {
    if (up.tagName === 'DETAILS') { up.open = true; }
  }
  if (there) { there.scrollIntoView(); }
}
window.addEventListener('hashchange', showTarget);
showTarget();
window.addEventListener('beforeprint', function () {
  document.querySelectorAll('details:not(.rest)').forEach(function (one) { one.open = true; });
});
