// Curves as SVG: drawn anew from columns, the frame stays.
import { el, put, say, svg } from "./dom.js";
import { clock } from "./words.js";

const LEFT = 44, RIGHT = 6, TOP = 8, BOTTOM = 18;
const charts = new Set();
let crossed = null; // the time under the pointer, for all charts

export function chart(title, draw, format, readout) {
  const read = el("span", { class: "read" });
  const body = svg("g"), cross = svg("line", { class: "cross", y1: TOP, y2: TOP, visibility: "hidden" });
  const frame = svg("svg", { class: "chart", role: "img", tabindex: "0", preserveAspectRatio: "none" }, body, cross);
  const node = el("figure", {}, el("figcaption", {}, el("b", {}, title), read), frame);
  const made = { node, frame, body, cross, read, draw, format, readout, title, columns: null, wide: 0 };
  frame.addEventListener("pointermove", (event) => {
    const box = frame.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    if (made.columns) crossAt(made.from + Math.max(0, Math.min(1, share)) * (made.until - made.from));
  });
  frame.addEventListener("pointerleave", () => crossAt(null));
  frame.addEventListener("blur", () => crossAt(null));
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (step === undefined || !made.columns) return;
    event.preventDefault();
    const by = step * made.columns.step_s;
    crossAt(Math.max(made.from, Math.min(made.until, (crossed ?? made.until) + by)));
  });
  charts.add(made);
  watch.observe(frame);
  return made;
}

const watch = new ResizeObserver((changes) => {
  for (const { target } of changes) {
    for (const made of charts) if (made.frame === target) redraw(made);
  }
});

export function show(made, columns, from, until) {
  made.columns = columns; made.from = from; made.until = until;
  redraw(made);
}

function crossAt(time) {
  crossed = time;
  for (const made of charts) readOut(made);
}

function redraw(made) {
  const wide = Math.round(made.frame.clientWidth);
  if (made.columns === null || wide === 0) return; // folded away
  const high = Math.round(made.frame.clientHeight) || 140;
  put(made.frame, "viewBox", `0 0 ${wide} ${high}`);
  put(made.cross, "y2", high - BOTTOM);
  made.wide = wide;
  const most = nice(made.draw.most(made.columns));
  const x = (time) => LEFT + ((time - made.from) / (made.until - made.from)) * (wide - LEFT - RIGHT);
  const y = (value) => high - BOTTOM - (Math.min(value, most * 1.02) / most) * (high - BOTTOM - TOP);
  const parts = [];
  for (const share of [0, 0.5, 1]) {
    const at = y(share * most);
    parts.push(svg("line", { class: share ? "grid" : "axis", x1: LEFT, x2: wide - RIGHT, y1: at, y2: at }));
    parts.push(svg("text", { x: LEFT - 5, y: at + 4, "text-anchor": "end" }, made.format(share * most)));
  }
  const long = made.until - made.from > 86400;
  parts.push(svg("text", { x: LEFT, y: high - 3 }, clock(made.from, long).slice(0, long ? -3 : 8)));
  parts.push(svg("text", { x: wide - RIGHT, y: high - 3, "text-anchor": "end" }, clock(made.until, long).slice(0, long ? -3 : 8)));
  parts.push(...made.draw.lines(made.columns, x, y, most));
  made.body.replaceChildren(...parts);
  readOut(made);
}

function readOut(made) {
  if (made.columns === null) return;
  const times = made.columns.times_s;
  const at = crossed === null ? null : nearest(times, crossed);
  const index = at ?? lastKnown(made.columns, made.readout.column);
  const text = index === null ? "nothing yet" : made.readout.say(made.columns, index);
  say(made.read, at === null ? text : `${clock(times[at])}  ${text}`);
  put(made.frame, "aria-label", `${made.title}: ${made.read.textContent}`);
  if (at === null) { put(made.cross, "visibility", "hidden"); return; }
  const place = LEFT + ((times[at] - made.from) / (made.until - made.from)) * (made.wide - LEFT - RIGHT);
  put(made.cross, "x1", place); put(made.cross, "x2", place); put(made.cross, "visibility", "visible");
}

function nearest(times, time) {
  if (!times.length) return null;
  const step = times.length > 1 ? times[1] - times[0] : 1;
  return Math.max(0, Math.min(times.length - 1, Math.round((time - times[0]) / step)));
}

function lastKnown(columns, name) {
  const values = columns[name] ?? [];
  for (let i = values.length - 1; i >= 0; i -= 1) if (values[i] !== null) return i;
  return null;
}

export function largest(...columns) {
  let most = 0;
  for (const values of columns) for (const value of values ?? []) if (value !== null && value > most) most = value;
  return most;
}

function nice(most) {
  if (!(most > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(most));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * unit >= most * 0.999) * unit;
}

// Gaps of up to `bridge` points are crossed: between two batches nothing is known.
export function line(times, values, x, y, bridge = 60) {
  let path = "", gap = Infinity;
  for (let i = 0; i < times.length; i += 1) {
    const value = values[i];
    if (value === null || value === undefined) { gap += 1; continue; }
    path += `${gap > bridge ? "M" : "L"}${x(times[i]).toFixed(1)} ${y(value).toFixed(1)}`;
    gap = 0;
  }
  return path;
}

export function area(times, low, high, x, y) {
  let path = "", edge = [];
  const close = () => {
    if (edge.length > 1) {
      path += edge.map(([t, , b], i) => `${i ? "L" : "M"}${x(t).toFixed(1)} ${y(b).toFixed(1)}`).join("");
      path += edge.reverse().map(([t, a]) => `L${x(t).toFixed(1)} ${y(a).toFixed(1)}`).join("") + "Z";
    }
    edge = [];
  };
  for (let i = 0; i < times.length; i += 1) {
    if (high[i] === null || high[i] === undefined) close();
    else edge.push([times[i], low === null ? 0 : low[i] ?? 0, high[i]]);
  }
  close();
  return path;
}
