// One card a class: is it in trouble, and why.
import { el, left, put, say, width } from "./dom.js";
import { HEALTH, count, percent, seconds } from "./words.js";

export function card(name) {
  const parts = {};
  const text = (key, tag = "span", given = {}) => (parts[key] = el(tag, given));
  const four = (title, key) => el("div", {}, el("dt", {}, title), text(key, "dd"));
  const node = el("article", { class: "card", "aria-label": `class ${name}` },
    el("div", { class: "top" }, el("h3", {}, name, text("priority", "small")), text("health", "span", { class: "chip" })),
    el("div", { class: "big" }, text("delay", "b"), text("target")),
    el("div", { class: "gauge", "aria-hidden": "true" }, (parts.bar = el("i")), (parts.mark = el("em"))),
    el("dl", { class: "four" }, four("offered/s", "offered"), four("kept", "kept"), four("shed", "shed"), four("waiting", "waiting")),
    text("why", "p", { class: "why" }), text("share", "p", { class: "share" }), text("set", "p", { class: "set" }));
  return { node, parts };
}

export function fill({ node, parts }, view, overrides) {
  const [sign, word] = HEALTH[view.health] ?? ["", view.health];
  put(node, "data-health", view.health);
  say(parts.priority, `priority ${view.priority}`);
  say(parts.health, `${sign} ${word}`);
  say(parts.delay, seconds(view.pace.delay_s));
  say(parts.target, `${view.statistic} delay, target ${Number(view.target_s.toPrecision(4))} s`);
  width(parts.bar, (view.pace.delay_s ?? 0) / (1.5 * view.target_s));
  left(parts.mark, 1 / 1.5);
  const decided = view.pace.kept_per_s + view.pace.shed_per_s;
  say(parts.offered, count(view.pace.offered_per_s));
  say(parts.kept, decided > 0 ? percent(view.pace.kept_per_s / decided) : "–");
  say(parts.shed, decided > 0 ? percent(view.pace.shed_per_s / decided) : "–");
  say(parts.waiting, count(view.pace.waiting_tuples));
  say(parts.why, view.why);
  put(parts.why, "title", view.why);
  say(parts.share, shareWords(view));
  const own = overrides.filter((one) => one.key.startsWith(`${view.name}.`));
  say(parts.set, own.map((one) => `${one.key.split(".")[1]} set to ${one.value} by ${one.by}`).join("; "));
}

export function shareWords(view) {
  const moved = view.quota - view.original;
  const change = Math.abs(moved) < 0.005 ? "its own share" : moved > 0 ? `borrows ${percent(moved)}` : `lends ${percent(-moved)}`;
  const slowed = view.slowed_s > 0 ? `; a batch every ${seconds(view.slowed_s)}` : "";
  return `${percent(view.quota)} of the machine, ${change}${slowed}`;
}

// The sentence at the top: what is wrong, or that nothing is.
export function verdict(state) {
  const rank = ["good", "quiet", "starting", "shedding", "catching up", "late", "missed"];
  const worst = state.classes.reduce((most, view) => (rank.indexOf(view.health) > rank.indexOf(most) ? view.health : most), "good");
  const named = (health) => state.classes.filter((view) => view.health === health).map((view) => view.name).join(", ");
  const cause = state.queries.find((query) => query.name === state.cause);
  const because = cause ? `The largest load is ${cause.name}: what it is offered takes ${cause.load.toFixed(1)} s of batch time a second, on ${state.cluster ? cause.node ?? "no node" : `${state.cores} cores`}` : "";
  if (state.state === "stopped") return ["quiet", "The flow has stopped", ""];
  const headline = {
    missed: `${named("missed")} cannot hold its target`, late: `${named("late")} is late`, "catching up": `${named("catching up")} is catching up`,
    shedding: `${named("shedding")} sheds; every target holds`, starting: "Starting", quiet: "Nothing is late; some classes are quiet", good: "Every class holds its target",
  }[worst];
  const why = state.classes.filter((view) => view.health === worst && worst !== "good").map((view) => `${view.name}: ${view.why}`);
  const paused = state.classes.filter((view) => view.shedding === "paused").map((view) => `shedding of ${view.name} is paused`);
  return [worst, headline, [...paused, because, ...(worst === "quiet" ? [] : why)].filter(Boolean).join(". ") || "Nothing is late, and nothing is shed."];
}
