// Elements made once and changed in place: nothing moves but numbers.
const SVG = "http://www.w3.org/2000/svg";

export function el(tag, given = {}, ...children) {
  return filled(document.createElement(tag), given, children);
}

export function svg(tag, given = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), given, children);
}

function filled(node, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function put(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

export function width(node, share) {
  const text = `${(100 * Math.max(0, Math.min(1, share))).toFixed(1)}%`;
  if (node.style.width !== text) node.style.width = text;
}

export function left(node, share) {
  node.style.left = `${(100 * Math.max(0, Math.min(0.995, share))).toFixed(1)}%`;
}

// One child of `parent` for each key, in order; made by `make` when it is new.
export function each(parent, keys, make) {
  const known = parent.known ?? (parent.known = new Map());
  for (const [key, made] of known) {
    if (!keys.includes(key)) { made.node.remove(); known.delete(key); }
  }
  let before = null;
  for (const key of keys) {
    let made = known.get(key);
    if (made === undefined) { made = make(key); known.set(key, made); }
    const place = before === null ? parent.firstElementChild : before.nextElementSibling;
    if (place !== made.node) parent.insertBefore(made.node, place);
    before = made.node;
  }
  return keys.map((key) => known.get(key));
}
