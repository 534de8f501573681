var archived = /\/data\/raw\/[0-9a-f]{16,64}\/[^/]*$/.test(location.pathname);
var alone = location.protocol !== 'file:' && !/^http/.test(location.protocol);
function inArchive(link) {
  var there = link.dataset.archived;
  if (there && !alone) { link.setAttribute('href', there + (link.getAttribute('href').match(/#.*$/) || [''])[0]); return; }
  var words = document.createElement('span');
  words.textContent = link.textContent + ' (' + link.getAttribute('href').replace(/#.*$/, '') + ' in the results folder)';
  link.replaceWith(words);
}
if (archived || alone) { document.querySelectorAll('a.away').forEach(inArchive); }
