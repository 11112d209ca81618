// Shares, queries, reasons and events.
import { each, el, left, put, say, width } from "./dom.js";
import { clock, count, percent, seconds } from "./words.js";
import { shareWords } from "./cards.js";

export function shares(parent, state, hue) {
  if (!parent.bars) parent.append((parent.bars = el("div", { class: "bars" })), (parent.note = el("p", { class: "note" })));
  const most = Math.max(...state.classes.map((view) => Math.max(view.quota, view.original)), 0.01);
  const rows = parent.bars;
  const wanted = state.classes.flatMap((view) => [`${view.name}|n`, `${view.name}|b`, `${view.name}|w`]);
  each(rows, wanted, (key) => {
    const kind = key.split("|").pop();
    if (kind !== "b") return { node: el(kind === "n" ? "b" : "small") };
    const bar = el("i"), mark = el("em");
    return { node: el("div", { class: "track", "aria-hidden": "true" }, bar, mark), bar, mark };
  });
  for (const view of state.classes) {
    const [name, track, words] = ["n", "b", "w"].map((kind) => rows.known.get(`${view.name}|${kind}`));
    say(name.node, view.name);
    track.node.style.setProperty("--class", hue(view.name));
    width(track.bar, view.quota / most);
    left(track.mark, view.original / most);
    say(words.node, shareWords(view));
    put(words.node, "title", view.said);
  }
  say(parent.note, `The mark is the share by priority. Unused time is lent by policy ${state.policy}.`);
}

const HEADS = [["query", "l"], ["class", "l"], ["state", "l"], ["delay", ""], ["a batch", "l"], ["load", ""], ["offered", ""], ["kept", ""], ["shed", ""], ["waiting", ""], ["malformed", ""], ["lost", ""], ["ledger", "l"]];

export function queries(table, state) {
  if (!table.tHead) {
    table.append(el("caption", { class: "away" }, "Queries, with totals since their first start"), el("thead", {}, el("tr", {}, ...HEADS.map(([name, kind]) => el("th", { scope: "col", class: kind }, name)))), el("tbody"));
  }
  const made = each(table.tBodies[0], state.queries.map((query) => query.name), (name) => {
    const cells = HEADS.slice(1).map(([, kind]) => el("td", { class: kind }));
    const split = ["fixed", "kept", "scanned"].map((part) => el("i", { class: part }));
    const took = el("span");
    cells[3].append(el("span", { class: "took" }, el("span", { class: "split", "aria-hidden": "true" }, ...split), took));
    return { node: el("tr", {}, el("th", { scope: "row" }, name), ...cells), cells, split, took };
  });
  state.queries.forEach((query, i) => row(made[i], query));
}

function row({ cells, split, took }, query) {
  const totals = query.totals, batch = query.batch, lost = totals.lost + totals.vanished;
  say(cells[0], query.class_name);
  say(cells[1], query.restarts ? `${query.state}, ${query.restarts} restarts` : query.state + (query.dry_run ? ", drops nothing" : ""));
  say(cells[2], seconds(query.pace.delay_s));
  ["fixed_s", "kept_s", "scanned_s"].forEach((name, i) => width(split[i], batch.total_s > 0 ? batch[name] / batch.total_s : 0));
  say(took, `${seconds(batch.batches ? batch.total_s : null)}`);
  put(cells[3], "title", `fixed ${seconds(batch.fixed_s)}, kept tuples ${seconds(batch.kept_s)}, scanned ${seconds(batch.scanned_s)}${phases(batch)}`);
  say(cells[4], query.load < 0.095 ? percent(query.load) : query.load.toFixed(2));
  [totals.offered, totals.admitted, totals.shed, totals.waiting, totals.malformed, lost].forEach((value, i) => {
    say(cells[5 + i], count(value));
    put(cells[5 + i], "title", value.toLocaleString());
  });
  for (const i of [9, 10]) put(cells[i], "class", cells[i].textContent === "0" ? "" : "bad");
  const exact = query.audit.verdict;
  say(cells[11], exact === "exact" ? `✓ exact, ${count(query.audit.batches)} batches` : exact === "not exact" ? `✗ not exact` : exact);
  put(cells[11], "class", exact === "exact" ? "l ok" : exact === "not exact" ? "l bad" : "l");
  put(cells[11], "title", query.audit.problems.join("; ") || "offered = admitted + shed + pending, batch by batch");
}

function phases(batch) {
  const known = Object.entries(batch.phases_s ?? {}).filter(([name, value]) => name !== "triggerExecution" && value > 0.0005);
  return known.length ? `; in Spark's words: ${known.map(([name, value]) => `${name} ${seconds(value)}`).join(", ")}` : "";
}

export function reasons(list, state) {
  const made = each(list, state.queries.map((query) => query.name), (name) => {
    const text = el("span");
    return { node: el("li", {}, el("b", { title: name }, name), text), text };
  });
  state.queries.forEach((query, i) => say(made[i].text, [query.reason || "no decision yet", query.budget].filter(Boolean).join(". ")));
}

export function events(list, state) {
  const keyed = new Map(state.said.slice(0, 30).map((one) => [`${one.time_s}|${one.text}`, one]));
  each(list, [...keyed.keys()], (key) => {
    const one = keyed.get(key);
    return { node: el("li", {}, el("time", { datetime: new Date(one.time_s * 1000).toISOString() }, clock(one.time_s)), el("span", {}, one.text)) };
  });
  if (!keyed.size && !list.firstChild) list.append(el("li", {}, el("b", {}, ""), el("span", {}, "nothing yet")));
}
