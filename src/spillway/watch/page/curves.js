// What is drawn of a class over time.
import { area, chart, largest, line } from "./chart.js";
import { el, svg } from "./dom.js";
import { count, percent, seconds } from "./words.js";

const path = (kind, d) => svg("path", { class: kind, d });

const DELAY = {
  most: (c) => Math.max(1.35 * largest(c.target_s), Math.min(1.05 * largest(c.worst_s), 4 * largest(c.target_s) || 1e9)),
  lines(c, x, y, most) {
    const over = c.delay_s.map((value, i) => (value !== null && c.target_s[i] !== null && value > c.target_s[i] ? value : null));
    const bars = over.map((value, i) => (value === null ? "" : `M${x(c.times_s[i]).toFixed(1)} ${y(c.target_s[i]).toFixed(1)}V${y(value).toFixed(1)}`)).join("");
    const last = c.target_s.findLast((value) => value !== null);
    const found = [path("worst", line(c.times_s, c.worst_s, x, y)), path("delay", line(c.times_s, c.delay_s, x, y)), path("target", line(c.times_s, c.target_s, x, y, 1e9))];
    if (bars) found.unshift(svg("path", { d: bars, class: "over", stroke: "var(--late)", "stroke-width": 2 }));
    if (last) found.push(svg("text", { class: "targetname", x: 48, y: y(last) - 4 }, `target ${Number(last.toPrecision(4))} s`));
    if (!c.delay_s.some((value) => value !== null)) found.push(empty(x, y, most));
    return found;
  },
};

const RATES = {
  most: (c) => 1.05 * largest(c.offered_per_s, c.kept_per_s.map((kept, i) => (kept === null ? null : kept + (c.shed_per_s[i] ?? 0)))),
  lines(c, x, y, most) {
    const all = c.kept_per_s.map((kept, i) => (kept === null ? null : kept + (c.shed_per_s[i] ?? 0)));
    const found = [path("shed", area(c.times_s, c.kept_per_s, all, x, y)), path("kept", area(c.times_s, null, c.kept_per_s, x, y)), path("offered", line(c.times_s, c.offered_per_s, x, y))];
    if (!c.offered_per_s.some((value) => value !== null)) found.push(empty(x, y, most));
    return found;
  },
};

const WAITING = {
  most: (c) => 1.05 * largest(c.waiting),
  lines(c, x, y, most) {
    const held = carried(c.waiting);
    const found = [path("waiting", area(c.times_s, null, held, x, y))];
    if (!c.waiting.some((value) => value !== null)) found.push(empty(x, y, most));
    return found;
  },
};

const BATCH = {
  most: (c) => 1.05 * largest(c.batch_s),
  lines(c, x, y, most) {
    const [fixed, kept, scanned] = ["fixed_s", "kept_s", "scanned_s"].map((name) => carried(c[name]));
    const two = kept.map((value, i) => (value === null ? null : value + fixed[i]));
    const three = scanned.map((value, i) => (value === null ? null : value + two[i]));
    const found = [path("p-fixed", area(c.times_s, null, fixed, x, y)), path("p-kept", area(c.times_s, fixed, two, x, y)), path("p-scanned", area(c.times_s, two, three, x, y))];
    if (!c.batch_s.some((value) => value !== null)) found.push(empty(x, y, most));
    return found;
  },
};

const empty = (x, y, most) => svg("text", { class: "none", x: 60, y: y(most / 2) }, "nothing yet");

// What held at the last batch holds until the next one ends.
function carried(values) {
  let last = null, age = 0;
  return values.map((value) => {
    if (value !== null) { last = value; age = 0; } else { age += 1; }
    return age > 60 ? null : last;
  });
}

const kept = (c, i) => (c.kept_per_s[i] + c.shed_per_s[i] > 0 ? percent(c.kept_per_s[i] / (c.kept_per_s[i] + c.shed_per_s[i])) : "–");

const SHARES = {
  most: () => 1,
  lines(c, x, y) {
    return c.lines.map((one) => {
      const drawn = svg("path", { class: "share", d: line(c.times_s, carried(one.values), x, y) });
      drawn.style.stroke = one.hue;
      return drawn;
    });
  },
};

export function sharesChart() {
  const say = (c, i) => c.lines.map((one) => `${one.name} ${percent(carried(one.values)[i] ?? 0)}`).join(", ");
  return chart("Shares over time", SHARES, percent, { column: "first", say });
}

export function classRow(name, hue, open) {
  const charts = [
    chart("Delay", DELAY, seconds, { column: "delay_s", say: (c, i) => `${seconds(c.delay_s[i])} of ${seconds(c.target_s[i])}` }),
    chart("Tuples a second", RATES, count, { column: "offered_per_s", say: (c, i) => `${count(c.offered_per_s[i])}, ${kept(c, i)} kept` }),
    chart("Waiting", WAITING, count, { column: "waiting", say: (c, i) => `${count(c.waiting[i])}, oldest ${seconds(c.waiting_s[i])}` }),
    chart("Batch time", BATCH, seconds, { column: "batch_s", say: (c, i) => `${seconds(c.batch_s[i])}, fixed ${seconds(c.fixed_s[i])}` }),
  ];
  const node = el("details", { class: "row", open }, el("summary", {}, el("h3", {}, name)), el("div", { class: "charts" }, ...charts.map((made) => made.node)));
  node.style.setProperty("--class", hue);
  return { node, charts };
}

export function key(...words) {
  return el("p", { class: "key" }, ...words.map(([text, colour]) => {
    const word = el("span", {}, text);
    word.style.setProperty("--k", `var(${colour})`);
    return word;
  }));
}
