// Streams, queries and where results go, with load on the edges; the cause in colour.
import { svg } from "./dom.js";
import { count, percent } from "./words.js";

const WIDE = 640, WIDEST = 150, BETWEEN = 34, TALL = 46, GAP = 16;

export function network(state, hue) {
  const depth = depths(state);
  const columns = [];
  for (const [name, at] of depth) (columns[at] ??= []).push(name);
  const wide = Math.min(WIDEST, (WIDE - 8 - BETWEEN * (columns.length - 1)) / columns.length);
  const rows = Math.max(...columns.map((column) => column.length));
  const high = rows * (TALL + GAP) + GAP;
  const places = new Map();
  const step = columns.length > 1 ? (WIDE - wide - 8) / (columns.length - 1) : 0;
  columns.forEach((column, at) => column.forEach((name, i) => {
    const y = (high - column.length * (TALL + GAP) + GAP) / 2 + i * (TALL + GAP);
    places.set(name, { x: 4 + at * step, y });
  }));
  const edges = [], most = Math.max(1, ...state.queries.map((query) => query.pace.offered_per_s));
  const edge = (from, to, rate, kinds) => {
    const a = places.get(from), b = places.get(to);
    if (!a || !b) return;
    const x1 = a.x + wide, y1 = a.y + TALL / 2, x2 = b.x, y2 = b.y + TALL / 2, mid = (x1 + x2) / 2;
    const thick = 1.5 + 8 * Math.sqrt(Math.min(1, rate / most));
    edges.push(svg("path", { class: `edge ${kinds}`, d: `M${x1} ${y1}C${mid} ${y1} ${mid} ${y2} ${x2} ${y2}`, "stroke-width": thick.toFixed(1) }));
    edges.push(svg("text", { x: x1 + 6, y: y2 < y1 ? y1 + thick / 2 + 12 : y1 - thick / 2 - 4 }, `${count(rate)}/s`));
  };
  for (const query of state.queries) {
    const marked = query.name === state.cause ? "cause" : "";
    for (const stream of query.reads) edge(`s:${stream}`, `q:${query.name}`, query.pace.offered_per_s, marked);
    const derived = state.streams.some((stream) => stream.written_by === query.name);
    edge(`q:${query.name}`, derived ? `s:${query.writes}` : `o:${query.writes}`, query.pace.kept_per_s, `${marked} ${derived ? "derived" : ""}`);
  }
  const boxes = [...places].map(([id, at]) => box(id, at, wide, state, hue));
  const words = state.queries.map((query) => `${query.name} reads ${query.reads.join(" and ")} at ${count(query.pace.offered_per_s)} a second`).join("; ");
  return svg("svg", { class: "net", viewBox: `0 0 ${WIDE} ${high}`, role: "img", "aria-label": words + (state.cause ? `; the largest load is ${state.cause}` : "") }, ...edges, ...boxes);
}

function box(id, at, wide, state, hue) {
  const [kind, name] = [id[0], id.slice(2)];
  const query = kind === "q" ? state.queries.find((one) => one.name === name) : null;
  const stream = kind === "s" ? state.streams.find((one) => one.name === name) : null;
  const load = query ? query.load < 0.095 ? percent(query.load) : query.load.toFixed(1) : "";
  const what = query ? query.node ? `${load} on ${query.node}` : `${query.class_name} · load ${load}` : stream ? stream.source : "sink";
  const frame = svg("rect", { width: wide, height: TALL, rx: 8 });
  if (query) frame.style.stroke = name === state.cause ? "" : hue(query.class_name);
  const fits = (text, each) => (text.length * each > wide - 14 ? `${text.slice(0, Math.max(2, Math.floor((wide - 14) / each) - 1))}…` : text);
  return svg("g", { class: name === state.cause && query ? "cause" : "", transform: `translate(${at.x} ${at.y})` }, frame,
    svg("text", { class: "name", x: 10, y: 19 }, fits(name, 7.2)), svg("text", { x: 10, y: 36 }, fits(what, 5.8)), titled(`${name}, ${what}`));
}

const titled = (text) => svg("title", {}, text);

// How far from the outermost stream everything is; sinks are last.
function depths(state) {
  const found = new Map(state.streams.filter((s) => !s.written_by).map((s) => [`s:${s.name}`, 0]));
  for (let round = 0; round <= state.queries.length; round += 1) {
    for (const query of state.queries) {
      const reads = query.reads.map((name) => found.get(`s:${name}`)).filter((at) => at !== undefined);
      if (!reads.length) continue;
      found.set(`q:${query.name}`, Math.max(...reads) + 1);
      if (state.streams.some((s) => s.written_by === query.name)) found.set(`s:${query.writes}`, Math.max(...reads) + 2);
    }
  }
  const last = Math.max(...found.values()) + 1;
  for (const query of state.queries) {
    if (!state.streams.some((s) => s.written_by === query.name)) found.set(`o:${query.writes}`, last);
  }
  return found;
}
