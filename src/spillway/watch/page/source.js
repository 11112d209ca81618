// Everything that comes from the driver: state as it changes, curves, and what is asked of it.
const RETRY_MS = [1000, 2000, 4000, 8000];
const TOKEN = "spillway-token";
const POINTS = 450;

export class Source {
  constructor(told) {
    this.told = told; // state(snapshot), curves(), live(yes, words), needed(): a token is needed
    this.token = sessionStorage.getItem(TOKEN);
    this.seconds = 900;
    this.curves = null;
    this.failed = 0;
  }

  use(token) {
    this.token = token;
    if (token) sessionStorage.setItem(TOKEN, token); else sessionStorage.removeItem(TOKEN);
  }

  headers(more = {}) {
    return this.token ? { ...more, authorization: `Bearer ${this.token}` } : more;
  }

  async ask(path) {
    const answer = await fetch(path, { headers: this.headers() });
    if (answer.status === 401) this.told.needed();
    if (!answer.ok) throw new Error((await said(answer)) ?? `${answer.status}`);
    return answer.json();
  }

  async set(path, body) {
    const answer = await fetch(path, { method: "POST", headers: this.headers({ "content-type": "application/json" }), body: JSON.stringify(body) });
    const value = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(value.error ?? `refused with ${answer.status}`);
    return value;
  }

  async who() {
    return this.ask("api/who");
  }

  // -- the state, for as long as the page is open

  async follow() {
    for (;;) {
      try {
        await this.listen();
      } catch (error) {
        this.told.live(false, "no answer");
      }
      await later(RETRY_MS[Math.min(this.failed, RETRY_MS.length - 1)]);
      this.failed += 1;
    }
  }

  async listen() {
    const stop = new AbortController();
    const answer = await fetch("api/events", { headers: this.headers(), signal: stop.signal });
    if (answer.status === 401) {
      this.told.needed();
      throw new Error("a token is needed");
    }
    if (!answer.ok || answer.body === null) throw new Error(String(answer.status));
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "", silence = null;
    const heard = () => { clearTimeout(silence); silence = setTimeout(() => stop.abort(), 15000); };
    try {
      heard();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) throw new Error("the flow has ended");
        heard();
        text += value;
        const events = text.split("\n\n");
        text = events.pop();
        const last = events.findLast((event) => event.startsWith("event: state"));
        if (last !== undefined) {
          this.failed = 0;
          this.told.live(true, "live");
          this.told.state(JSON.parse(last.slice(last.indexOf("data: ") + 6)));
        }
      }
    } finally {
      clearTimeout(silence);
    }
  }

  // -- curves: all of them once, then only their ends

  async draw(seconds) {
    this.seconds = seconds;
    this.curves = await this.ask(`api/history?seconds=${seconds}&points=${POINTS}`);
    this.told.curves();
  }

  // Seconds from one point to the next.
  step() {
    return Math.max(1, ...Object.values(this.curves?.classes ?? {}).map((columns) => columns.step_s ?? 1));
  }

  async extend() {
    if (this.curves === null) { await this.draw(this.seconds); return; }
    const last = Math.max(60, 3 * this.step());
    const asked = this.seconds;
    const news = await this.ask(`api/history?seconds=${asked}&points=${POINTS}&last=${last}`);
    if (asked !== this.seconds) return;
    for (const part of ["classes", "queries"]) {
      for (const [name, columns] of Object.entries(news[part])) {
        const known = this.curves[part][name];
        this.curves[part][name] = known ? joined(known, columns, news.until_s - asked) : columns;
      }
    }
    this.curves.until_s = news.until_s;
    this.told.curves();
  }
}

function joined(known, news, from) {
  const begins = news.times_s[0];
  let end = known.times_s.length;
  while (end > 0 && known.times_s[end - 1] >= begins) end -= 1;
  let start = 0;
  while (start < end && known.times_s[start] < from) start += 1;
  const found = { step_s: news.step_s };
  for (const name of Object.keys(news)) {
    if (name !== "step_s") found[name] = (known[name] ?? []).slice(start, end).concat(news[name]);
  }
  return found;
}

async function said(answer) {
  return (await answer.json().catch(() => ({}))).error;
}

export const later = (ms) => new Promise((done) => setTimeout(done, ms));
