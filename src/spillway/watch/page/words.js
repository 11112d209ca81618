// Numbers and times as people read them.
const UNITS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function count(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  for (const [unit, letter] of UNITS) {
    if (size >= unit * 0.9995) return `${digits(value / unit)} ${letter}`;
  }
  return size >= 10 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}

export function seconds(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value < 0.0995) return `${Math.round(value * 1000)} ms`;
  if (value < 99.5) return `${value < 9.995 ? value.toFixed(2) : value.toFixed(1)} s`;
  return span(value);
}

export function span(value) {
  const s = Math.round(value);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, "0")} min`;
  return `${Math.floor(s / 86400)} days`;
}

export function percent(value, places = 0) {
  if (value > 0 && value < 0.001) return "<0.1 %";
  return `${(100 * value).toFixed(places || (value > 0 && value < 0.0995 ? 1 : 0))} %`;
}

export function clock(time, withDay = false) {
  const at = new Date(time * 1000);
  const day = withDay ? `${at.toLocaleDateString(undefined, { month: "short", day: "numeric" })} ` : "";
  return day + at.toLocaleTimeString(undefined, { hour12: false });
}

function digits(value) {
  const size = Math.abs(value);
  return size >= 99.95 ? value.toFixed(0) : size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

export const HEALTH = {
  good: ["✓", "holds its target"], shedding: ["▼", "sheds to hold it"], late: ["▲", "late"],
  missed: ["▲", "cannot hold it"], "catching up": ["»", "catching up"], quiet: ["–", "quiet"],
  starting: ["…", "starting"],
};
