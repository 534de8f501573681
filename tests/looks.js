// What a reader would see of a page: see looks.py. Each of the last three functions returns what is wrong, in words.

// A function of an element that asks once for each.
function once(f) {
  const known = new Map();
  return function (element) {
    if (!known.has(element)) known.set(element, f(element));
    return known.get(element);
  };
}

// The rectangle that an element and the boxes around it let be seen.
const frame = once(function (element) {
  if (!element) return {left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity};
  const r = Object.assign({}, frame(element.parentElement)), style = getComputedStyle(element);
  if (style.display === 'inline' || (style.overflowX === 'visible' && style.overflowY === 'visible')) return r;
  const box = element.getBoundingClientRect();
  if (style.overflowX !== 'visible') { r.left = Math.max(r.left, box.left); r.right = Math.min(r.right, box.right); }
  if (style.overflowY !== 'visible') { r.top = Math.max(r.top, box.top); r.bottom = Math.min(r.bottom, box.bottom); }
  return r;
});

// The part of a rectangle that the boxes around it let be seen.
function shown(whole, element) {
  const seen = frame(element), r = {};
  for (const side of ['left', 'top']) r[side] = Math.max(whole[side], seen[side]);
  for (const side of ['right', 'bottom']) r[side] = Math.min(whole[side], seen[side]);
  r.width = r.right - r.left;
  r.height = r.bottom - r.top;
  return r;
}

// All texts that are seen, with the corners of each: the page stands still meanwhile.
const texts = once(function () {
  const found = [];
  const seen = (element) => element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
  document.querySelectorAll('svg text').forEach(function (element) {
    const words = element.textContent.trim();
    if (!words || !seen(element)) return;
    const box = element.getBBox(), matrix = element.getScreenCTM();
    const at = (x, y) => new DOMPoint(x, y).matrixTransform(matrix);
    const top = box.y + 0.2 * box.height, foot = box.y + 0.8 * box.height;
    const quad = [at(box.x, top), at(box.x + box.width, top), at(box.x + box.width, foot), at(box.x, foot)];
    found.push({words: words, element: element, paint: element.querySelector('tspan') || element, property: 'fill', quad: quad});
  });
  const walk = document.createTreeWalker(document.body || document.documentElement, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode, element = node.parentElement;
    if (!node.data.trim() || element.closest('svg, script, style, title, option') || !seen(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const whole of range.getClientRects()) {
      const r = shown(whole, element);
      if (r.width < 2 || r.height < 2) continue;
      const top = r.top + 0.2 * r.height, foot = r.top + 0.8 * r.height;
      const quad = [[r.left, top], [r.right, top], [r.right, foot], [r.left, foot]].map((p) => new DOMPoint(p[0], p[1]));
      found.push({words: node.data.trim(), element: element, paint: element, property: 'color', quad: quad});
    }
  }
  return found;
});

function overlapping() {
  function apart(a, b) {
    for (const quad of [a, b]) {
      for (let i = 0; i < 4; i++) {
        const p = quad[i], q = quad[(i + 1) % 4], x = q.y - p.y, y = p.x - q.x, length = Math.hypot(x, y) || 1;
        const on = (points) => points.map((o) => (o.x * x + o.y * y) / length);
        const u = on(a), v = on(b);
        if (Math.max(...u) < Math.min(...v) + 1 || Math.max(...v) < Math.min(...u) + 1) return true;
      }
    }
    return false;
  }
  const found = texts().slice(), bad = [];
  found.forEach(function (t) { t.top = Math.min(...t.quad.map((p) => p.y)); t.foot = Math.max(...t.quad.map((p) => p.y)); });
  found.sort((a, b) => a.top - b.top);
  for (let i = 0; i < found.length; i++) {
    for (let j = i + 1; j < found.length && found[j].top < found[i].foot; j++) {
      if (found[i].element === found[j].element || apart(found[i].quad, found[j].quad)) continue;
      bad.push(found[i].words.slice(0, 60) + ' | ' + found[j].words.slice(0, 60));
    }
  }
  return bad.slice(0, 20);
}

function cut() {
  const wide = document.documentElement.clientWidth, bad = [];
  const alone = document.documentElement.tagName === 'svg';
  for (const text of texts()) {
    const xs = text.quad.map((p) => p.x), ys = text.quad.map((p) => p.y);
    const drawing = text.element.closest('svg');
    const box = drawing && !alone ? drawing.ownerSVGElement || drawing : null;
    const r = alone ? {left: 0, top: 0, right: 1e9, bottom: 1e9} : box ? box.getBoundingClientRect() : {left: 0, top: -1e9, right: wide, bottom: 1e9};
    const outside = Math.min(...xs) < r.left - 1 || Math.max(...xs) > r.right + 1 || Math.min(...ys) < r.top - 1 || Math.max(...ys) > r.bottom + 1;
    const hidden = !drawing && getComputedStyle(text.element).overflowX !== 'visible' && text.element.scrollWidth > text.element.clientWidth + 1;
    if (outside || hidden) bad.push(text.words.slice(0, 80));
  }
  return bad.slice(0, 20);
}

function faint() {
  const look = document.createElementNS('http://www.w3.org/1999/xhtml', 'style');
  look.textContent = '* { pointer-events: auto !important; }';
  (document.head || document.documentElement).appendChild(look);
  const parts = function (colour) {
    const found = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/.exec(colour);
    return found ? [+found[1], +found[2], +found[3], found[4] === undefined ? 1 : +found[4]] : null;
  };
  const over = (front, back) => [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3])).concat([1]);
  const light = function (c) {
    const f = c.slice(0, 3).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : Math.pow((v / 255 + 0.055) / 1.055, 2.4)));
    return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2];
  };
  const ground = function (x, y) {
    const layers = [];
    for (const element of document.elementsFromPoint(x, y)) {
      if (element.closest('text')) continue;
      const style = getComputedStyle(element), drawn = element.namespaceURI.endsWith('svg') && !(element.tagName === 'svg' && element.clientWidth);
      const paint = parts(drawn ? style.fill : style.backgroundColor);
      const shape = !drawn || /^(rect|path|circle|ellipse|polygon|use)$/.test(element.tagName);
      if (!paint || !shape || paint[3] === 0) continue;
      paint[3] *= drawn ? +style.fillOpacity * +style.opacity : 1;
      layers.push(paint);
      if (paint[3] === 1) break;
    }
    return layers.reverse().reduce((back, front) => over(front, back), [255, 255, 255, 1]);
  };
  const opacity = once((element) => (element ? +getComputedStyle(element).opacity * opacity(element.parentElement) : 1));
  const bad = [], home = scrollY;
  for (const text of texts()) {
    const style = getComputedStyle(text.paint), ink = parts(style[text.property]), size = parseFloat(style.fontSize);
    if (!ink) continue;
    const least = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700) ? 3 : 4.5;
    for (const share of [0.02, 0.5, 0.98]) {
      const at = (axis) => (text.quad[0][axis] + text.quad[3][axis]) / 2 * (1 - share) + (text.quad[1][axis] + text.quad[2][axis]) / 2 * share;
      const x = at('x'), down = at('y') + home;  // in the page; what lies behind is told in view alone
      if (down < scrollY + 0.1 * innerHeight || down > scrollY + 0.9 * innerHeight) {
        scrollTo({left: scrollX, top: down - innerHeight / 2, behavior: 'instant'});
      }
      const y = down - scrollY;
      if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
      const back = ground(x, y), front = over([ink[0], ink[1], ink[2], ink[3] * opacity(text.paint)], back);
      const a = light(front), b = light(back), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < least) { bad.push(text.words.slice(0, 60) + ': ' + ratio.toFixed(2)); break; }
    }
  }
  scrollTo({left: scrollX, top: home, behavior: 'instant'});
  return bad.slice(0, 20);
}

function unreadable() {
  return [overlapping(), cut(), faint()].flat();
}
