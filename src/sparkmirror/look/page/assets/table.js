// A table of which only the visible rows are in the document: real table markup, as many rows as there are.

import { TABLES } from "./columns.js";
import { element, say } from "./format.js";
import { History, draw, sparkline } from "./spark.js";

const SPARE = 6;
const ORDER_MS = 5000;
const WIDTH = 112;
const collator = new Intl.Collator("en", { numeric: true });

// Rows of equal state: those with a larger order of magnitude of lag come first; what has caught up is in order of names.
function sizeOf(state, lag) {
  if (state === "caught up" || state === "done") return 0;
  return lag == null ? 99 : Math.floor(Math.log10(Math.max(lag, 1)));
}

export class Table {
  // `open(name)` is called when a row's name is pressed.
  constructor(kind, label, open) {
    this.nothing = "There is nothing here.";
    this.shape = TABLES[kind];
    this.open = open;
    this.rows = new Map();
    this.histories = new Map();
    this.shown = [];
    this.slots = [];
    [this.sortAt, this.up] = this.shape.order;
    this.filter = "";
    this.state = "";
    this.waiting = 0;
    this.focused = null;
    this.loaded = false;
    this.orderedAt = -Infinity;
    this.places = new Map();
    this.#build(label);
  }

  #build(label) {
    this.search = element("input", { type: "search", placeholder: "Filter ( / )", "aria-label": `Filter ${label}` });
    this.search.addEventListener("input", () => this.#filterBy(this.search.value.trim().toLowerCase(), this.state));
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.search.value = "";
      this.#filterBy("", this.state);
    });
    this.states = element("select", { "aria-label": "State" }, element("option", { value: "" }, "all states"));
    this.states.addEventListener("change", () => this.#filterBy(this.filter, this.states.value));
    this.count = element("p", { className: "count" });
    this.head = element("tr", { "aria-rowindex": "1" });
    this.shape.columns.forEach((column, index) => {
      const inner = column.curve
        ? column.label
        : element("button", { type: "button", title: column.title ?? "" }, column.label);
      const cell = element("th", { scope: "col", className: this.#classes(column) }, inner);
      if (!column.least) cell.style.setProperty("--width", `${column.width ?? WIDTH}px`);
      if (!column.curve) inner.addEventListener("click", () => this.#sortBy(index));
      this.head.append(cell);
    });
    this.above = element("tbody", { "aria-hidden": "true" }, element("tr", {}, element("td")));
    this.body = element("tbody");
    this.below = element("tbody", { "aria-hidden": "true" }, element("tr", {}, element("td")));
    this.table = element(
      "table", { className: "grid", "aria-label": label },
      element("thead", {}, this.head), this.above, this.body, this.below,
    );
    const least = this.shape.columns.reduce((sum, column) => sum + (column.least ?? column.width ?? WIDTH), 0);
    this.table.style.setProperty("--least", `${least}px`);
    this.scroller = element("div", { className: "scroller", tabIndex: 0, role: "region", "aria-label": `${label}, rows` }, this.table);
    this.scroller.addEventListener("scroll", () => this.#later(), { passive: true });
    this.scroller.addEventListener("keydown", (event) => this.#key(event));
    this.body.addEventListener("focusin", (event) => {
      this.focused = event.target.closest("tr")?.dataset.key ?? null;
    });
    this.body.addEventListener("focusout", () => {
      if (!this.moving) this.focused = null;
    });
    this.resized = new ResizeObserver(() => this.#later());
    this.resized.observe(this.scroller);
    this.empty = element("p", { className: "empty" });
    this.node = element(
      "div", { className: "table" },
      element("div", { className: "tools" }, this.search, this.states, this.count), this.scroller, this.empty,
    );
  }

  #classes(column) {
    return [
      column.numeric ? "num" : "", column.optional ? "opt" : "", column.wide ? "wide" : "", column.name ? "name" : "",
      column.curve ? "curve" : "", column.state ? "state" : "",
    ].filter(Boolean).join(" ");
  }

  // --- data

  take({ reset, rows, gone, waiting }) {
    if (reset) this.rows.clear();
    if (reset || gone.length) this.orderedAt = -Infinity;
    this.loaded = true;
    this.waiting = waiting;
    for (const old of gone) this.rows.delete(old);
    this.patch(rows);
  }

  patch(rows) {
    const now = Date.now();
    for (const row of rows) {
      this.rows.set(row[0], row);
      if (!this.shape.lag) continue;
      const key = this.shape.key(row);
      let history = this.histories.get(key);
      if (!history) this.histories.set(key, (history = new History()));
      history.add(now, this.shape.lag(row));
    }
    this.#arrange();
  }

  visible() {
    return this.slots.filter((slot) => slot.row).map((slot) => slot.row[0]);
  }

  #arrange() {
    const column = this.shape.columns[this.sortAt];
    const value = (row) => (column.sort ? column.sort(row[column.at]) : row[column.at]);
    const sign = this.up ? 1 : -1;
    const unknown = column.worstUnknown ? Infinity : -Infinity;
    const lag = this.shape.lag ?? (() => 0);
    const states = new Map();
    const some = [];
    for (const row of this.rows.values()) {
      states.set(row[1], (states.get(row[1]) ?? 0) + 1);
      if (this.state && row[1] !== this.state) continue;
      const key = this.shape.key(row);
      if (this.filter && !key.toLowerCase().includes(this.filter)) continue;
      some.push({ row, key, by: value(row) ?? unknown, size: sizeOf(row[1], lag(row)) });
    }
    const compare = (one, other) => {
      if (one.by !== other.by) {
        if (typeof one.by === "number" && typeof other.by === "number") return sign * (one.by - other.by);
        return sign * collator.compare(String(one.by), String(other.by));
      }
      return other.size - one.size || collator.compare(one.key, other.key);
    };
    this.shown = this.#inOrder(some, compare);
    const all = this.rows.size;
    say(this.count, some.length === all ? `${all.toLocaleString("en")} ${all === 1 ? "row" : "rows"}` : `${some.length.toLocaleString("en")} of ${all.toLocaleString("en")} rows`);
    this.#offer(states);
    this.table.setAttribute("aria-rowcount", String(some.length + 1));
    say(this.empty, !this.loaded ? "Loading…" : all === 0 ? this.nothing : some.length === 0 ? "Nothing matches the filter." : "");
    this.#heads();
    this.#later();
  }

  // Rows keep their places for some seconds under a live load, so that they can be read and pressed.
  #inOrder(some, compare) {
    const now = performance.now();
    if (now - this.orderedAt < ORDER_MS && some.every((one) => this.places.has(one.key))) {
      return some.sort((one, other) => this.places.get(one.key) - this.places.get(other.key));
    }
    some.sort(compare);
    this.orderedAt = now;
    this.places = new Map(some.map((one, index) => [one.key, index]));
    return some;
  }

  #offer(states) {
    const wanted = ["", ...[...states.keys()].sort()];
    if (this.state && !states.has(this.state)) wanted.push(this.state);
    const options = [...this.states.options].map((option) => option.value);
    if (wanted.join() !== options.join()) {
      this.states.replaceChildren(...wanted.map((state) => element("option", { value: state }, state || "all states")));
      this.states.value = this.state;
    }
  }

  #heads() {
    [...this.head.cells].forEach((cell, index) => {
      if (this.shape.columns[index].curve) return;
      const order = index === this.sortAt ? (this.up ? "ascending" : "descending") : "none";
      if (cell.getAttribute("aria-sort") !== order) cell.setAttribute("aria-sort", order);
    });
  }

  #sortBy(index) {
    const column = this.shape.columns[index];
    this.orderedAt = -Infinity;
    this.up = this.sortAt === index ? !this.up : !column.numeric;
    this.sortAt = index;
    this.scroller.scrollTop = 0;
    this.#arrange();
  }

  #filterBy(filter, state) {
    this.filter = filter;
    this.state = state;
    this.orderedAt = -Infinity;
    this.scroller.scrollTop = 0;
    this.#arrange();
  }

  // --- rows in the document

  #later() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.render();
    });
  }

  get #height() {
    return matchMedia("(max-width: 640px)").matches ? 40 : 30;
  }

  render() {
    const height = this.#height;
    const most = Math.min(innerHeight * 0.64, 640);
    const whole = this.shown.length * height + this.head.offsetHeight + 16;
    this.scroller.style.height = `${Math.round(Math.min(whole, most))}px`;
    const room = Math.ceil(this.scroller.clientHeight / height) + 1;
    const count = Math.min(this.shown.length, room + 2 * SPARE);
    const last = Math.max(this.shown.length - count, 0);
    const first = Math.min(Math.max(Math.floor(this.scroller.scrollTop / height) - SPARE, 0), last);
    while (this.slots.length < count) this.slots.push(this.#slot());
    while (this.slots.length > count) this.slots.pop().node.remove();
    this.moving = true;
    const now = Date.now();
    for (let at = 0; at < count; at++) this.#fill(this.slots[at], first + at, now);
    if (this.focused) this.#refocus();
    this.moving = false;
    this.#pad(this.above, first * height);
    this.#pad(this.below, Math.max(this.shown.length - first - count, 0) * height);
  }

  #pad(body, height) {
    body.hidden = height === 0;
    body.rows[0].cells[0].style.height = `${height}px`;
  }

  #slot() {
    const cells = this.shape.columns.map((column) => {
      if (column.curve) return element("td", { className: this.#classes(column) }, sparkline(96, 20));
      if (!column.name) return element("td", { className: this.#classes(column) });
      const inner = this.open
        ? element("button", { type: "button", className: "link", tabIndex: -1 })
        : element("span");
      return element("th", { scope: "row", className: this.#classes(column) }, inner);
    });
    const node = element("tr", {}, ...cells);
    const slot = { node, cells, row: null };
    if (this.open) {
      const button = node.querySelector("button");
      button.addEventListener("click", () => this.open(button.textContent));
    }
    this.body.append(node);
    return slot;
  }

  #fill(slot, index, now) {
    const { row, key } = this.shown[index];
    const moved = slot.row !== row;
    slot.row = row;
    if (slot.index !== index) {
      slot.index = index;
      slot.node.setAttribute("aria-rowindex", String(index + 2));
    }
    if (slot.node.dataset.key !== key) slot.node.dataset.key = key;
    this.shape.columns.forEach((column, at) => {
      const cell = slot.cells[at];
      if (column.curve) draw(cell.firstChild, this.histories.get(key), now);
      else if (moved) {
        const shown = column.show(row[column.at]);
        say(column.name ? cell.firstChild : cell, shown);
        if (column.state) cell.dataset.state = row[column.at];
        if (column.wide || column.name) cell.title = shown.length > 24 ? shown : "";
      }
    });
  }

  // --- keyboard: the focus stays with its row, wherever that is sorted to

  #refocus() {
    const slot = this.slots.find((one) => one.node.dataset.key === this.focused);
    const target = slot ? slot.node.querySelector("button") : this.scroller;
    if (target && target !== document.activeElement) target.focus({ preventScroll: true });
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !this.open || !this.shown.length || event.target.closest("thead")) return;
    event.preventDefault();
    const at = this.shown.findIndex((one) => one.key === this.focused);
    const to = Math.min(Math.max(at < 0 ? (step > 0 && step < Infinity ? 0 : step) : at + step, 0), this.shown.length - 1);
    const height = this.#height;
    const top = to * height;
    const { scrollTop, clientHeight } = this.scroller;
    const inside = clientHeight - this.head.offsetHeight - height;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top > scrollTop + inside) this.scroller.scrollTop = top - inside;
    this.focused = this.shown[to].key;
    this.render();
  }

  close() {
    this.resized.disconnect();
    cancelAnimationFrame(this.asked);
  }
}
