// The connection: it comes back by itself, and tells how old the newest word is.

const SILENCE_MS = 10_000;
const LATE_MS = 3_500;

export class Stream {
  constructor(listeners, freshness) {
    this.listeners = listeners;
    this.freshness = freshness;
    this.heardAt = null;
    this.ageS = 0;
    this.openedAt = 0;
    this.tries = 0;
    setInterval(() => this.#watch(), 250);
  }

  open(query) {
    this.query = query;
    this.#connect();
  }

  #connect() {
    clearTimeout(this.timer);
    this.source?.close();
    this.openedAt = performance.now();
    const source = (this.source = new EventSource(`events?${this.query}`));
    for (const [name, listen] of Object.entries(this.listeners)) {
      source.addEventListener(name, (event) => {
        if (source !== this.source) return;
        const data = JSON.parse(event.data);
        if (name === "now") {
          this.heardAt = performance.now();
          this.ageS = data.age_s;
          this.tries = 0;
        }
        listen(data);
      });
    }
    source.addEventListener("error", () => {
      if (source === this.source && source.readyState === EventSource.CLOSED) this.#again();
    });
  }

  #again() {
    this.tries += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#connect(), Math.min(1000 * this.tries, 5000));
  }

  #watch() {
    const now = performance.now();
    if (this.query !== undefined && now - Math.max(this.heardAt ?? 0, this.openedAt) > SILENCE_MS) this.#connect();
    if (this.heardAt === null) {
      this.freshness(now - this.openedAt > LATE_MS ? "lost" : "waiting", null);
      return;
    }
    const silent = now - this.heardAt;
    const age = this.ageS + silent / 1000;
    this.freshness(silent > LATE_MS ? "lost" : this.ageS > 5 ? "old" : "live", age);
  }
}
