// A cluster: its nodes with what runs on them, what flows between them, and what is on its way.
import { each, el, put, say, svg, width } from "./dom.js";
import { count, percent, span } from "./words.js";

const WIDE = 640, GAP = 44, EDGE = 10, HEAD = 46, ROW = 30, FOOT = 8, MOST_COLUMNS = 3;

export function nodes(picture, table, state, hue) {
  picture.replaceChildren(drawing(state, hue));
  list(table, state);
}

// -- the picture

function drawing(state, hue) {
  const { nodes, moves } = state.cluster;
  const held = new Map(nodes.map((node) => [node.name, rows(node.name, state)]));
  const columns = Math.max(1, Math.min(MOST_COLUMNS, nodes.length));
  const wide = (WIDE - 2 * EDGE - (columns - 1) * GAP) / columns;
  const places = new Map(), boxes = [];
  let top = EDGE;
  for (let first = 0; first < nodes.length; first += columns) {
    const line = nodes.slice(first, first + columns);
    const high = HEAD + FOOT + ROW * Math.max(1, ...line.map((node) => held.get(node.name).length));
    line.forEach((node, i) => {
      const x = EDGE + i * (wide + GAP);
      held.get(node.name).forEach((row, at) => places.set(row.key, { x, y: top + HEAD + at * ROW + ROW / 2 - 2, wide }));
      boxes.push(box(node, held.get(node.name), { x, y: top, wide, high }, state, hue));
    });
    top += high + GAP / 2;
  }
  const most = Math.max(1, ...state.queries.map((query) => query.pace.kept_per_s));
  const edges = [...links(state).map(([from, to, rate]) => edge(places.get(`q:${from}`), places.get(`q:${to}`), rate, most)),
    ...moves.map((move) => arrow(places.get(`q:${move.query}`), places.get(`m:${move.query}`), move))].filter((one) => one !== null);
  return svg("svg", { class: "net", viewBox: `0 0 ${WIDE} ${Math.max(top, 60)}`, role: "img", "aria-label": spoken(state) }, arrowHead(), ...boxes, ...edges);
}

// What is drawn in a node: its queries, and those that are on their way to it.
function rows(name, state) {
  const here = state.queries.filter((query) => query.node === name).map((query) => ({ key: `q:${query.name}`, query }));
  const coming = state.cluster.moves.filter((move) => move.destination === name).map((move) => ({ key: `m:${move.query}`, move }));
  return [...here, ...coming];
}

function box(node, held, { x, y, wide, high }, state, hue) {
  const full = Math.min(1, node.load), bar = wide - 24;
  const parts = [
    svg("rect", { class: "node", width: wide, height: high, rx: 10 }),
    svg("text", { class: "name", x: 12, y: 20 }, short(node.name, wide / 11)),
    svg("text", { x: wide - 12, y: 20, "text-anchor": "end" }, node.state === "running" || node.state === "attached" ? percent(node.load) : node.state),
    svg("rect", { class: "load", x: 12, y: 28, width: bar, height: 6, rx: 3 }),
    svg("rect", { class: `load ${node.load > 0.9 ? "full" : "used"}`, x: 12, y: 28, width: (bar * full).toFixed(1), height: 6, rx: 3 }),
  ];
  held.forEach((row, at) => parts.push(chip(row, at, wide, state, hue)));
  if (!held.length) parts.push(svg("text", { x: 12, y: HEAD + 16 }, "nothing runs here"));
  return svg("g", { class: node.state === "running" || node.state === "attached" ? "" : "away", transform: `translate(${x} ${y})` }, ...parts, svg("title", {}, `${node.name}, ${node.state}`));
}

function chip({ query, move }, at, wide, state, hue) {
  const y = HEAD + at * ROW, name = query ? query.name : move.query;
  const frame = svg("rect", { class: query ? "" : "coming", x: 10, y: 0, width: wide - 20, height: ROW - 6, rx: 6 });
  if (query && name !== state.cause) frame.style.stroke = hue(query.class_name);
  const rate = query ? `${count(query.pace.offered_per_s)}/s` : "coming";
  return svg("g", { class: query && name === state.cause ? "cause" : "", transform: `translate(0 ${y})` }, frame,
    svg("text", { class: "name", x: 18, y: 16 }, short(name, (wide - 90) / 7)), svg("text", { x: wide - 18, y: 16, "text-anchor": "end" }, rate), svg("title", {}, query ? `${name}: ${query.state}` : `${name}: ${move.stage}`));
}

// [writer, reader, tuples a second]: one query's results are another one's stream.
function links(state) {
  return state.streams.filter((stream) => stream.written_by).flatMap((stream) => {
    const writer = state.queries.find((query) => query.name === stream.written_by);
    return state.queries.filter((query) => writer && query.reads.includes(stream.name)).map((query) => [writer.name, query.name, query.pace.offered_per_s]);
  });
}

function edge(a, b, rate, most) {
  if (!a || !b) return null;
  const thick = (1.5 + 6 * Math.sqrt(Math.min(1, rate / most))).toFixed(1), d = curve(a, b), words = `${count(rate)}/s`;
  return svg("g", {}, svg("path", { class: "edge", d, "stroke-width": thick }), svg("text", { class: "on", ...middle(a, b), "text-anchor": "middle" }, words));
}

function arrow(a, b, move) {
  if (!a || !b) return null;
  return svg("path", { class: "move", d: curve(a, b), "stroke-width": 2, "marker-end": "url(#moves)" }, svg("title", {}, `${move.query} moves from ${move.origin} to ${move.destination}: ${move.stage}`));
}

// From the side of one that faces the other; within a column around its right side.
function curve(a, b) {
  if (a.x === b.x) { const x = a.x + a.wide - 10; return `M${x} ${a.y}C${x + 36} ${a.y} ${x + 36} ${b.y} ${x} ${b.y}`; }
  const right = a.x < b.x, x1 = right ? a.x + a.wide - 10 : a.x + 10, x2 = right ? b.x + 10 : b.x + b.wide - 10, mid = (x1 + x2) / 2;
  return `M${x1} ${a.y}C${mid} ${a.y} ${mid} ${b.y} ${x2} ${b.y}`;
}

function middle(a, b) {
  if (a.x === b.x) return { x: a.x + a.wide + 12, y: (a.y + b.y) / 2 };
  const right = a.x < b.x;
  return { x: ((right ? a.x + a.wide : a.x) + (right ? b.x : b.x + b.wide)) / 2, y: (a.y + b.y) / 2 - 6 };
}

const arrowHead = () => svg("defs", {}, svg("marker", { id: "moves", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { class: "head", d: "M0 0L8 4L0 8z" })));
const short = (text, most) => (text.length > most ? `${text.slice(0, Math.max(1, Math.floor(most) - 1))}…` : text);

function spoken(state) {
  const each = state.cluster.nodes.map((node) => `${node.name} is ${node.state}, load ${percent(node.load)}, with ${rows(node.name, state).filter((row) => row.query).map((row) => row.query.name).join(", ") || "no query"}`);
  return [...each, ...state.cluster.moves.map((move) => `${move.query} moves from ${move.origin} to ${move.destination}`)].join("; ");
}

// -- the same as a table, with the way to each node's own page

const HEADS = [["node", "l"], ["state", "l"], ["load", "l"], ["queries", "l wrap"], ["machine", "l"], ["heard", ""]];

function list(table, state) {
  if (!table.tHead) {
    table.append(el("caption", { class: "away" }, "Nodes"), el("thead", {}, el("tr", {}, ...HEADS.map(([name, kind]) => el("th", { scope: "col", class: kind }, name)))), el("tbody"));
  }
  const { nodes } = state.cluster;
  const made = each(table.tBodies[0], nodes.map((node) => `${node.name}|${node.watch ?? ""}`), (key) => {
    const [name, address] = [key.slice(0, key.indexOf("|")), key.slice(key.indexOf("|") + 1)];
    const cells = HEADS.slice(1).map(([, kind]) => el("td", { class: kind })), bar = el("i"), words = el("span");
    cells[1].append(el("span", { class: "took" }, el("span", { class: "split", "aria-hidden": "true" }, bar), words));
    const safe = /^https?:/.test(address);
    return { node: el("tr", {}, el("th", { scope: "row" }, safe ? el("a", { href: address, rel: "noopener" }, name) : name), ...cells), cells, bar, words };
  });
  nodes.forEach((node, i) => {
    const { cells, bar, words } = made[i];
    say(cells[0], node.state);
    put(bar, "class", node.load > 0.9 ? "full" : "kept");
    width(bar, node.load);
    say(words, `${percent(node.load)} of ${node.slots}`);
    say(cells[2], [node.queries.join(", ") || "none", ...node.failed.map((why) => `gave up ${why}`)].join("; "));
    say(cells[3], node.machine);
    say(cells[4], node.heard_s === null ? "–" : `${span(node.heard_s)} ago`);
  });
}

// In words, below the heading.
export function led({ cluster }) {
  if (cluster.away) return `${cluster.away}; what is shown is from before`;
  const under = cluster.moves.map((move) => `${move.query} goes from ${move.origin} to ${move.destination}: ${move.stage}`);
  return [cluster.leader ? `Led by ${cluster.leader}` : "Nobody leads it", ...under].join(". ");
}
