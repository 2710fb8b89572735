// Hours of a flow's past, as the server keeps them, with an axis of time (UTC).

import { duration, element, short } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const ASK_MS = 30_000;
const MOST = 1440;
const GAP_S = 95;
const HOURS = [1, 3, 12];
const TICKS_MIN = [1, 2, 5, 10, 15, 30, 60, 120, 180];

export const FIGURES = [
  { name: "Age of the oldest record that is not copied", at: 4, show: duration },
  { name: "Lag in records", at: 3, show: short },
  { name: "Records/s", at: 5, show: short },
];

// The samples of one flow: [time in s, tone, state, lag, lag in s, rate]. What the server had before a reload is asked for.
export class Past {
  constructor(flow) {
    this.flow = flow;
    this.samples = [];
    this.askedAt = -Infinity;
  }

  take(flow, atMs) {
    this.live = [atMs / 1000, flow.tone, flow.state, flow.unknown ? null : flow.lag, flow.unknown ? null : flow.lag_s, flow.records_per_s];
    if (performance.now() - this.askedAt > ASK_MS) this.#ask();
  }

  async #ask() {
    this.askedAt = performance.now();
    const since = this.samples.at(-1)?.[0] ?? 0;
    const answer = await fetch(`history?${new URLSearchParams({ flow: this.flow, since_s: since })}`).catch(() => null);
    if (!answer?.ok) return;
    const { samples } = await answer.json();
    this.samples = [...this.samples.filter((sample) => sample[0] < since), ...samples].slice(-MOST);
  }

  // Hours that hold all that is known, in quarters.
  get hours() {
    const known = this.live && this.samples.length ? (this.live[0] - this.samples[0][0]) / 3600 : 0;
    return Math.min(Math.max(Math.ceil(4 * known) / 4, 0.25), HOURS.at(-1));
  }

  since(hours) {
    const from = this.live[0] - hours * 3600;
    const before = this.samples.filter((sample) => sample[0] >= from && sample[0] < this.live[0] - 1);
    return [...before, this.live];
  }
}

function made(name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const timeOf = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 16);

const ROUND_S = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18_000, 36_000, 86_400];

// A round number that is not below the largest value.
function ceiling(value, show) {
  const round = show === duration && ROUND_S.find((seconds) => seconds >= value);
  if (round) return round;
  const size = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((step) => step * size).find((top) => top >= value);
}

// Draw one figure: a line where it is known, a strip of states below, times under it.
export function drawPast(svg, past, { hours, figure, small = false }) {
  if (!past.live) return;
  const width = Math.max(svg.clientWidth, 120);
  const height = svg.clientHeight || 60;
  const { at, show } = FIGURES[figure];
  const samples = past.since(hours);
  const now = past.live[0];
  const left = small ? 0 : 78;
  const bottom = height - (small ? 15 : 18);
  const x = (seconds) => left + ((width - left) * (seconds - now + hours * 3600)) / (hours * 3600);
  const most = Math.max(0, ...samples.map((sample) => sample[at] ?? 0));
  const top = ceiling(most, show);
  const y = (value) => bottom - 8 - ((bottom - 12) * value) / top;
  let path = "";
  let before = null;
  for (const sample of samples) {
    const value = sample[at];
    if (value != null) {
      const joins = before !== null && sample[0] - before < GAP_S;
      path += `${joins ? "L" : "M"}${x(sample[0]).toFixed(1)} ${y(value).toFixed(1)}`;
      if (!joins) path += "h1";
    }
    before = value == null ? null : sample[0];
  }
  const nodes = [];
  if (!small) {
    for (const value of [0, top]) {
      nodes.push(made("path", { class: "rule", d: `M${left} ${y(value)}H${width}` }));
      nodes.push(made("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, show(value).replace(/ 0 (s|min|h)$/, "")));
    }
  }
  nodes.push(...strip(samples, x, bottom, left, small));
  nodes.push(...times(now, hours, x, left, width, height, small));
  nodes.push(made("path", { class: "line", d: path }));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren(...nodes);
  const worst = samples.find((sample) => sample[at] === most && most > 0);
  const present = past.live[at] == null ? "not known" : show(past.live[at]);
  svg.setAttribute("aria-label", `${FIGURES[figure].name}, ${hours} h: now ${present}${worst ? `, most ${show(most)} at ${timeOf(worst[0])} UTC` : ""}`);
}

function strip(samples, x, bottom, left, small) {
  const runs = [];
  samples.forEach((sample, index) => {
    const end = Math.min(sample[0] + 30, samples[index + 1]?.[0] ?? samples.at(-1)[0]);
    const run = runs.at(-1);
    if (run && run.tone === sample[1] && run.state === sample[2] && sample[0] - run.end < GAP_S - 30) run.end = end;
    else runs.push({ tone: sample[1], state: sample[2], begin: sample[0], end });
  });
  return runs.map((run) => {
    const from = Math.max(x(run.begin), left);
    const bar = made("rect", { "data-tone": run.tone, x: from, y: bottom - 4, width: Math.max(x(run.end) - from, 1), height: small ? 3 : 5 });
    bar.append(made("title", {}, `${timeOf(run.begin)}–${timeOf(run.end)} UTC: ${run.state}`));
    return bar;
  });
}

function times(now, hours, x, left, width, height, small) {
  if (small) {
    return [
      made("text", { x: 0, y: height - 3 }, timeOf(now - hours * 3600)),
      made("text", { x: width, y: height - 3, "text-anchor": "end" }, `${timeOf(now)} UTC`),
    ];
  }
  const step = 60 * (TICKS_MIN.find((minutes) => (hours * 60) / minutes <= width / 80) ?? TICKS_MIN.at(-1));
  const nodes = [];
  for (let at = Math.ceil((now - hours * 3600) / step) * step; at <= now; at += step) {
    nodes.push(made("path", { class: "tick", d: `M${x(at)} 4V${height - 15}` }));
    if (x(at) > left && x(at) < width - 72) nodes.push(made("text", { x: x(at), y: height - 3, "text-anchor": "middle" }, timeOf(at)));
  }
  nodes.push(made("text", { x: width, y: height - 3, "text-anchor": "end" }, "now, UTC"));
  return nodes;
}

export function chart(name) {
  return made("svg", { class: name, role: "img", "aria-label": "No past is known yet" });
}

// The large chart of the chosen flow, with what it shows and how far back.
export function pastPanel() {
  let hours = null;
  let shown = null;
  const svg = chart("chart");
  const figure = element("select", { "aria-label": "Figure" }, ...FIGURES.map((one, index) => element("option", { value: String(index) }, one.name)));
  const range = element("select", { "aria-label": "How far back" }, element("option", { value: "" }, "all that is known"), ...HOURS.map((one) => element("option", { value: String(one) }, `${one} h`)));
  const node = element("section", { className: "past", "aria-label": "The past hours" }, element("div", { className: "past-tools" }, figure, range), svg);
  const redraw = () => shown && drawPast(svg, shown, { hours: hours ?? shown.hours, figure: Number(figure.value) });
  figure.addEventListener("change", redraw);
  range.addEventListener("change", () => {
    hours = range.value ? Number(range.value) : null;
    redraw();
  });
  new ResizeObserver(redraw).observe(node);
  return {
    node,
    update(past) {
      shown = past;
      redraw();
    },
  };
}
