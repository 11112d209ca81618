// Changing settings: everything at once or nothing, with the flow file's value beside it.
import { el, say } from "./dom.js";
import { percent } from "./words.js";

const LAWS = ["predictive", "none", "fixed", "aurora", "baseline", "ctrl", "dissp", "seamless", "aloma", "pid", "pie"];
const OF_A_CLUSTER = ["delay", "priority", "lend"];
const POLICIES = ["dilos", "absolute", "hybrid", "guaranteed", "none"];
const FIELDS = [
  ["delay", "delay target", "p99 2s", "text"], ["priority", "priority", "1 to 1000", "number"], ["lend", "lends at most", "0 to 1", "number"],
  ["min_keep", "keeps at least", "0 to 1", "number"], ["manager", "load manager", LAWS, "choice"], ["shedding", "shedding", ["active", "paused"], "choice"],
];

export function openSettings(dialog, source, state, name) {
  const inputs = new Map(), told = el("p", { role: "status", "aria-live": "polite" });
  const overrides = new Map(state.overrides.map((one) => [one.key, one]));
  const send = el("button", { type: "submit", class: "primary", disabled: true }, "Apply");
  const trial = el("button", { type: "button", disabled: true, onclick: () => preview() }, "Preview a new target");
  const changed = () => [...inputs].filter(([, input]) => input.value !== input.dataset.was);
  const look = () => {
    for (const [, input] of inputs) input.parentElement.classList.toggle("changed", input.value !== input.dataset.was);
    send.disabled = changed().length === 0;
    trial.disabled = !changed().some(([key]) => key.endsWith(".delay"));
  };
  const preview = async () => {
    const targets = Object.fromEntries(changed().filter(([key]) => key.endsWith(".delay")).map(([key, input]) => [key.split(".")[0], input.value]));
    told.className = "";
    say(told, "Deciding the last minutes again …");
    try {
      const found = await source.set("api/preview", targets);
      say(told, previewWords(found));
    } catch (error) {
      say(told, error.message);
      told.className = "bad";
    }
  };
  const apply = async (body) => {
    try {
      await source.set("api/set", body);
      dialog.close();
    } catch (error) {
      say(told, error.message);
      told.className = "bad";
    }
  };
  const field = (key, title, value, hint, kind) => {
    const over = overrides.get(key);
    const input = Array.isArray(hint) ? el("select", {}, ...choices(hint, value)) : el("input", { value, placeholder: hint, inputmode: kind === "number" ? "decimal" : "text", autocomplete: "off", spellcheck: "false" });
    input.dataset.was = value;
    input.addEventListener("input", look);
    inputs.set(key, input);
    const file = el("span", { class: "file" }, over ? `file: ${over.file_value} ` : "as in the flow file ");
    if (over) file.append(el("button", { type: "button", onclick: () => apply({ [key]: null }), "aria-label": `clear ${key}` }, "clear"));
    return el("label", { class: "field" }, el("span", {}, title), input, file);
  };
  const fields = FIELDS.filter(([key]) => !state.cluster || OF_A_CLUSTER.includes(key));
  const sets = state.classes.map((view) => el("fieldset", {}, el("legend", {}, view.name), el("div", { class: "fields" },
    ...fields.map(([key, title, hint, kind]) => field(`${view.name}.${key}`, title, key === "delay" ? written(view) : String(view[key]), hint, kind)))));
  const flow = el("fieldset", {}, el("legend", {}, "all classes"), el("div", { class: "fields" }, field("control.policy", "how capacity moves", state.policy, POLICIES, "choice")));
  const form = el("form", { method: "dialog" }, el("h2", { id: "h-settings" }, "Settings"),
    el("p", { class: "note" }, `You are ${name}. What you set is kept in ${state.cluster ? "the control log, holds on all nodes" : "the flow's folder"}, wins over the flow file also after a restart, and is in the journal with your name.`),
    ...sets, state.cluster ? null : flow, el("div", { class: "foot" }, told, el("button", { type: "button", onclick: () => dialog.close() }, "Close"), state.cluster ? null : trial, send));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply(Object.fromEntries(changed().map(([key, input]) => [key, input.value])));
  });
  dialog.replaceChildren(form);
  dialog.showModal();
}

function previewWords(found) {
  const off = Math.abs(found.shed_ratio_now - found.recorded_shed_ratio);
  const exact = off > 0.02 ? ` (this simulation is off by ${percent(off)})` : "";
  return `In the last ${Math.max(1, Math.round(found.seconds / 60))} min the flow would have shed ${percent(found.shed_ratio)} instead of ${percent(found.shed_ratio_now)}, with ${percent(found.late_ratio)} late instead of ${percent(found.late_ratio_now)}${exact}.`;
}

function choices(known, value) {
  const all = known.includes(value) ? known : [value, ...known];
  return all.map((one) => el("option", { value: one, selected: one === value }, one));
}

const written = (view) => (view.statistic === "mean" ? "" : `${view.statistic} `) + `${Number(view.target_s.toPrecision(6))}s`;

export function askToken(dialog, why, done) {
  const input = el("input", { type: "password", autocomplete: "current-password", "aria-label": "token" });
  const told = el("p", { role: "status", class: "bad" });
  const form = el("form", { method: "dialog" }, el("h2", { id: "h-ask" }, "A token is needed"),
    el("p", { class: "note" }, why), el("label", {}, "Token", input),
    el("div", { class: "foot" }, told, el("button", { type: "button", onclick: () => dialog.close() }, "Close"), el("button", { type: "submit", class: "primary" }, "Use it")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const refused = await done(input.value.trim());
    if (refused) say(told, refused); else dialog.close();
  });
  dialog.replaceChildren(form);
  if (!dialog.open) dialog.showModal();
  input.focus();
}
