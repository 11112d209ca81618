// The page: one state, drawn into a frame that stays.
import { card, fill, verdict } from "./cards.js";
import { show } from "./chart.js";
import { classRow, key, sharesChart } from "./curves.js";
import { each, put, say } from "./dom.js";
import { network } from "./network.js";
import { led, nodes } from "./nodes.js";
import { Source, later } from "./source.js";
import { askToken, openSettings } from "./steer.js";
import { events, queries, reasons, shares } from "./tables.js";
import { span } from "./words.js";

const at = (id) => document.getElementById(id);
const HUES = 8;
let state = null, asking = false;

const hue = (name) => {
  const names = state.classes.map((view) => view.name).sort();
  return `var(--c${(names.indexOf(name) % HUES) + 1})`;
};

const source = new Source({
  live: (yes, words) => { put(at("live"), "data-on", yes ? "yes" : "no"); say(at("live"), words); },
  needed: () => needToken("This address shows nothing without a token."),
  curves: () => { if (state) drawCurves(); },
  state: (news) => { const first = state === null; state = news; draw(); if (first) document.body.dataset.ready = "yes"; },
});

function draw() {
  const [health, headline, why] = verdict(state);
  put(at("verdict"), "data-health", health);
  say(at("headline"), headline);
  say(at("why"), why);
  say(at("flow"), state.flow);
  const age = state.started_s === null ? state.state : `${state.state} for ${span(Math.max(0, state.time_s - state.started_s))}`;
  const size = state.cluster ? `${state.cluster.nodes.length} nodes` : `${state.cores} cores`;
  say(at("facts"), `${age} · ${size} · ${state.queries.length} queries · policy ${state.policy}`);
  document.title = `${health === "good" ? "" : "● "}${state.flow}: ${headline}`;
  const cards = each(at("classes"), state.classes.map((view) => view.name), card);
  state.classes.forEach((view, i) => fill(cards[i], view, state.overrides));
  at("cluster").hidden = !state.cluster;
  if (state.cluster) {
    say(at("led"), led(state));
    nodes(at("picture"), at("nodes"), state, hue);
  }
  shares(at("shares"), state, hue);
  queries(at("queries"), state);
  reasons(at("reasons"), state);
  events(at("said"), state);
  at("network").replaceChildren(network(state, hue));
}

function drawCurves() {
  const parent = at("curves");
  if (!parent.rows) {
    parent.rows = parent.appendChild(document.createElement("div"));
    parent.append(key(["delay", "--kept"], ["target", "--late"], ["kept", "--kept-fill"], ["shed", "--shed-fill"], ["offered", "--offered"], ["fixed part of a batch", "--fixed"], ["kept tuples", "--kept"], ["scanned tuples", "--scanned"]));
  }
  const open = (name) => matchMedia("(min-width: 641px)").matches || name === troubled();
  const rows = each(parent.rows, state.classes.map((view) => view.name), (name) => classRow(name, hue(name), open(name)));
  const until = source.curves.until_s, curves = source.curves.classes;
  const from = Math.max(until - source.seconds, Math.min(until - 60, begun(Object.values(curves))));
  state.classes.forEach((view, i) => {
    const columns = curves[view.name];
    if (columns && columns.offered_per_s) for (const made of rows[i].charts) show(made, columns, from, until);
  });
  if (!parent.shares) { parent.shares = sharesChart(); at("shares").append(parent.shares.node); }
  const known = state.classes.filter((view) => curves[view.name]?.quota);
  if (known.length) {
    const { times_s, step_s } = curves[known[0].name];
    const lines = known.map((view) => ({ name: view.name, hue: hue(view.name), values: curves[view.name].quota.slice(-times_s.length) }));
    show(parent.shares, { times_s, step_s, lines, first: lines[0].values }, from, until);
  }
}

// The class to look at first: the one in trouble, else the highest.
function troubled() {
  const found = state.classes.find((view) => !["good", "quiet"].includes(view.health));
  return (found ?? state.classes[0]).name;
}

function begun(curves) {
  const first = curves.map((columns) => columns.times_s[columns.offered_per_s.findIndex((value) => value !== null)]);
  return Math.min(...first.filter((time) => time !== undefined), Infinity);
}

async function keepCurves() {
  for (;;) {
    try {
      if (state !== null && !document.hidden) await source.extend();
    } catch { /* the stream says when nobody answers */ }
    await later(1000 * Math.min(60, Math.max(3, source.step())));
  }
}

function needToken(why) {
  if (asking) return;
  asking = true;
  at("ask").addEventListener("close", () => { asking = false; }, { once: true });
  askToken(at("ask"), why, async (token) => {
    source.use(token);
    try {
      const who = await source.who();
      return who.name === null && why.includes("change") ? who.why : null;
    } catch (error) {
      source.use(null);
      return error.message;
    }
  });
}

async function steer() {
  if (state === null) return;
  const who = source.token ? await source.who().catch((error) => ({ may_change: false, why: error.message })) : { may_change: false };
  if (who.may_change) { openSettings(at("settings"), source, state, who.name); return; }
  needToken("To change settings, give a token: by default it is in the file tokens of the flow's folder.");
  at("ask").addEventListener("close", async () => {
    const now = source.token ? await source.who().catch(() => ({})) : {};
    if (now.may_change) openSettings(at("settings"), source, state, now.name);
  }, { once: true });
}

const THEMES = { light: "☀", dark: "☾" };
function theme(chosen) {
  const now = chosen ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  if (chosen) { document.documentElement.dataset.theme = chosen; localStorage.setItem("spillway-theme", chosen); }
  say(at("theme"), THEMES[now]);
  return now;
}

at("theme").addEventListener("click", () => theme((document.documentElement.dataset.theme ?? theme()) === "dark" ? "light" : "dark"));
at("steer").addEventListener("click", steer);
at("window").addEventListener("change", (event) => source.draw(Number(event.target.value)).catch(() => {}));
theme(localStorage.getItem("spillway-theme"));
source.seconds = Number(at("window").value);
source.follow();
keepCurves();
