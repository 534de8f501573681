'use strict';
function valueOf(cell) {
  var value = cell.dataset.v;
  return value === undefined ? cell.textContent : value === '' ? -Infinity : Number(value);
}
function sortBy(th) {
  var table = th.closest('table'), body = table.tBodies[0], at = th.cellIndex;
  var down = th.getAttribute('aria-sort') !== 'descending';
  table.querySelectorAll('th').forEach(function (other) { other.removeAttribute('aria-sort'); });
  th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  Array.from(body.rows).sort(function (a, b) {
    var x = valueOf(a.cells[at]), y = valueOf(b.cells[at]);
    var order = typeof x === 'number' ? x - y : String(x).localeCompare(String(y));
    return down ? -order : order;
  }).forEach(function (row) { body.appendChild(row); });
}
document.querySelectorAll('table.sortable th').forEach(function (th) {
  var button = document.createElement('button');
  button.type = 'button';
  button.textContent = th.textContent;
  th.replaceChildren(button);
  button.addEventListener('click', function () { sortBy(th); });
});
