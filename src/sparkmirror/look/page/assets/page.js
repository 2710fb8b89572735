// The page: what the server says, put where people look for it.

import { ask, caps, exactly } from "./actions.js";
import { TABLES } from "./columns.js";
import { arrow, bytes, duration, element, keep, number, say, sayWithCode, short } from "./format.js";
import { PANELS } from "./panels.js";
import { Past, chart, drawPast, pastPanel } from "./past.js";
import { Stream } from "./stream.js";
import { Table } from "./table.js";

const at = (id) => document.getElementById(id);
const TONES = { bad: "Problem", warning: "Look", unknown: "Not known", working: "Working", good: "Good", standby: "Standby" };
const TABS = { topics: "Topics", partitions: "Partitions", groups: "Groups", ...Object.fromEntries(Object.entries(PANELS).map(([id, one]) => [id, one.name])) };
const TAB_OF = { positions: "groups" };

const WORST_FIRST = Object.keys(TONES);
const FIRST_FINDINGS = 8;

const pasts = new Map();
const past = pastPanel();
at("past").append(past.node);
let allFindings = false;
let now = null;
let mayAct = false;
let where = read();
let shown = null;

// --- where we are: the address tells it, so it can be sent to others

function read() {
  const said = new URLSearchParams(location.hash.slice(1));
  const view = said.get("view");
  return { flow: said.get("flow") ?? "", view: view in TABLES || view in PANELS ? view : "topics", of: said.get("of") ?? "" };
}

function go(to) {
  const next = { ...where, of: "", ...to };
  const hash = new URLSearchParams({ flow: next.flow, view: next.view, ...(next.of ? { of: next.of } : {}) });
  if (`#${hash}` !== location.hash) location.hash = hash;
}

addEventListener("hashchange", () => {
  where = read();
  show();
});

// --- the stream

const stream = new Stream(
  {
    hello(data) {
      mayAct = data.may_act;
      at("actions").hidden = !mayAct;
      at("look-only").hidden = mayAct || !data.can_act;
    },
    now(data) {
      now = data;
      if (!now.flows.some((flow) => flow.flow === where.flow) && now.flows.length) {
        where = { flow: now.flows[0].flow, view: where.view, of: "" };
        show();
      }
      render();
    },
    rows(data) {
      if (data.kind === where.view && data.flow === where.flow && data.of === where.of) {
        (shown.table ?? shown.panel).take(data);
        if (data.waiting && shown.table) refresh();
      }
    },
  },
  (state, age) => {
    const node = at("freshness");
    node.dataset.state = state;
    document.body.classList.toggle("stale", state === "lost");
    sign(state === "lost");
    say(at("clock"), `${new Date().toISOString().slice(11, 19)} UTC`);
    const old = age === null ? "" : duration(age < 10 ? Math.round(age * 10) / 10 : age);
    if (state === "live") say(node, age < 2 ? "Live" : `Live, ${Math.round(age)} s old`);
    else if (state === "old") say(node, `Old: these figures were taken ${duration(Math.round(age))} ago`);
    else if (state === "lost") say(node, age === null ? "Not connected; trying again" : `Not connected: this was so ${duration(Math.round(age))} ago; trying again`);
    else say(node, old || "Connecting…");
  },
);

// The rows that are seen are asked for, where more change each second than are sent.
async function refresh() {
  const { table } = shown;
  const query = new URLSearchParams({ kind: where.view, flow: where.flow, of: where.of });
  for (const one of table.visible().slice(0, 200)) query.append("numbers", one);
  if (!query.has("numbers")) return;
  const answer = await fetch(`rows?${query}`).catch(() => null);
  if (answer?.ok && shown?.table === table) table.patch(await answer.json());
}

// --- flows and problems

function render() {
  if (!now) return;
  const { process } = now;
  say(at("process"), `${process.host}:${process.pid} · ${process.version} · up ${duration(process.up_s)}`);
  keep(at("flows"), now.flows, makeFlow, updateFlow);
  renderFindings();
  const flow = now.flows.find((one) => one.flow === where.flow);
  at("detail").hidden = !flow;
  if (flow) {
    say(at("detail-title"), arrow(flow.flow));
    say(at("caps"), caps(flow));
    renderClusters(flow);
    past.update(pasts.get(flow.flow));
    shown?.panel?.update(flow, process);
    if (shown?.table) shown.table.nothing = flow.role === "leader" ? "There is nothing here." : "Only the process that works on the flow knows them.";
    renderCounts(flow);
  }
  announce();
}

const FIGURES = [
  ["Lag", (flow) => short(flow.lag) + (flow.lag != null && flow.unknown ? ` + ${number(flow.unknown)} not known` : "")],
  ["Oldest", (flow) => duration(flow.lag_s)],
  ["Records/s", (flow) => short(flow.records_per_s)],
  ["Bytes/s", (flow) => bytes(flow.bytes_per_s)],
  ["Caught up in", (flow) => (flow.lag === 0 && flow.state === "caught up" ? "now" : duration(flow.eta_s))],
  ["Latency p50 / p99", (flow) => (flow.latency_ms.length ? `${short(flow.latency_ms[0])} / ${short(flow.latency_ms[1])} ms` : "–")],
];

function makeFlow() {
  const name = element("button", { type: "button", className: "flow-name" });
  const item = element(
    "li", { className: "flow" },
    element("div", { className: "flow-head" }, name, element("span", { className: "tone" })),
    element("p", { className: "sentence" }),
    element("p", { className: "then" }, element("span"), element("a", { hidden: true, rel: "noreferrer" })),
    element("dl", {}, ...FIGURES.map(([label]) => element("div", {}, element("dt", {}, label), element("dd")))),
    chart("mini"),
  );
  name.addEventListener("click", () => go({ flow: item.dataset.flow }));
  return item;
}

function updateFlow(item, flow) {
  item.dataset.flow = flow.flow;
  item.dataset.tone = flow.tone;
  const [head, sentence, then, figures, curve] = item.children;
  say(head.children[0], arrow(flow.flow));
  const chosen = String(flow.flow === where.flow);
  if (head.children[0].getAttribute("aria-pressed") !== chosen) head.children[0].setAttribute("aria-pressed", chosen);
  say(head.children[1], TONES[flow.tone]);
  say(sentence, flow.what);
  say(then.children[0], flow.then);
  then.children[1].hidden = !flow.page;
  if (flow.page && then.children[1].href !== flow.page) {
    then.children[1].href = flow.page;
    say(then.children[1], `Its page: ${flow.page}`);
  }
  FIGURES.forEach(([, text], index) => say(figures.children[index].children[1], text(flow)));
  let known = pasts.get(flow.flow);
  if (!known) pasts.set(flow.flow, (known = new Past(flow.flow)));
  known.take(flow, Date.now());
  drawPast(curve, known, { hours: 1, figure: 0, small: true });
}

// The tab of the browser tells the worst state, by its title and its icon.
function sign(lost) {
  const worst = now?.flows.toSorted((one, other) => WORST_FIRST.indexOf(one.tone) - WORST_FIRST.indexOf(other.tone))[0];
  const others = now ? now.flows.filter((flow) => flow.tone === worst?.tone).length - 1 : 0;
  const title = lost ? "Not connected · sparkmirror" : worst ? `${TONES[worst.tone]}: ${arrow(worst.flow)}${others ? ` +${others}` : ""} · sparkmirror` : "sparkmirror";
  const icon = lost || !worst ? "assets/icon-unknown.svg" : `assets/icon-${worst.tone}.svg`;
  if (document.title !== title) document.title = title;
  if (at("icon").getAttribute("href") !== icon) at("icon").setAttribute("href", icon);
}

function renderClusters(flow) {
  keep(
    at("clusters"), flow.sides,
    () => element("div", {}, element("dt"), element("dd")),
    (item, side) => {
      const [up, known] = side.brokers;
      const down = up != null && up < known;
      item.dataset.down = String(Boolean(side.away) || down);
      say(item.children[0], `${side === flow.sides[0] ? "Source" : "Target"} ${side.alias}`);
      const brokers = up == null ? "brokers not known" : `${up} of ${known} ${known === 1 ? "broker" : "brokers"} up`;
      say(item.children[1], [side.servers, side.release && `Kafka ${side.release} or newer`, brokers].filter(Boolean).join(" · "));
    },
  );
}

function renderFindings() {
  const { findings, more_findings: more } = now;
  const notices = findings.filter((one) => one.severity === "notice");
  const problems = findings.filter((one) => one.severity !== "notice");
  at("problems").hidden = !problems.length;
  say(at("problems-title"), `Problems (${number(problems.length + more)})`);
  keep(at("findings"), allFindings ? problems : problems.slice(0, FIRST_FINDINGS), makeFinding, updateFinding);
  const left = allFindings ? 0 : Math.max(problems.length - FIRST_FINDINGS, 0);
  at("all-findings").hidden = !left;
  say(at("all-findings"), `Show ${number(left)} more`);
  at("more-findings").hidden = !more;
  say(at("more-findings"), more ? `and ${number(more)} more: sparkmirror doctor FILE lists them` : "");
  at("good-to-know").hidden = !notices.length;
  say(at("notices-title"), `Good to know (${number(notices.length)})`);
  keep(at("notices"), notices, makeFinding, updateFinding);
}

at("all-findings").addEventListener("click", () => {
  allFindings = true;
  renderFindings();
});

function makeFinding() {
  return element(
    "li", {},
    element("p", { className: "title" }, element("span", { className: "severity" }), element("strong"), element("span", { className: "subject" })),
    element("p", { className: "evidence" }), element("p", { className: "cause" }), element("p", { className: "remedy" }),
    element("ul", { className: "effects", "aria-label": "It explains" }),
  );
}

const subject = (one) => [now.flows.length > 1 ? arrow(one.flow) : "", one.subject].filter(Boolean).join(" · ");

function updateFinding(item, one) {
  item.dataset.severity = one.severity;
  item.dataset.rule = one.rule;
  const [title, evidence, cause, remedy, effects] = item.children;
  say(title.children[0], one.severity);
  say(title.children[1], one.title);
  say(title.children[2], subject(one));
  say(evidence, one.evidence);
  sayWithCode(cause, one.cause);
  sayWithCode(remedy, one.action);
  const lines = one.effects.map((effect) => [effect.title, effect.subject, effect.evidence].filter(Boolean).join(" · "));
  if (one.more_effects) lines.push(`and ${number(one.more_effects)} more`);
  effects.hidden = !lines.length;
  keep(effects, lines, () => element("li"), say);
}

// A screen reader hears what changes, not every figure.
const heard = new Map();
let saidAt = 0;
function announce() {
  if (performance.now() - saidAt < 5000) return;
  const news = now.flows.filter((flow) => {
    const problems = now.findings.filter((one) => one.flow === flow.flow).map((one) => `${one.rule} ${one.subject}`);
    const key = [flow.tone, flow.state, ...problems].join("|");
    const isNew = heard.get(flow.flow) !== key;
    heard.set(flow.flow, key);
    return isNew;
  });
  if (!news.length) return;
  saidAt = performance.now();
  say(at("announce"), news.slice(0, 3).map((flow) => `${arrow(flow.flow)}: ${flow.what}`).join(" "));
}

// --- tabs

const tabs = at("tabs");
for (const [id, name] of Object.entries(TABS)) {
  const tab = element("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "panel" }, name, element("span", { className: "number" }));
  tab.addEventListener("click", () => go({ view: id }));
  tabs.append(tab);
}
tabs.addEventListener("keydown", (event) => {
  const all = [...tabs.children];
  const here = all.indexOf(document.activeElement);
  const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const tab = all[(to + all.length) % all.length];
  tab.focus();
  tab.click();
});

function renderCounts(flow) {
  const sum = (counts) => Object.values(counts).reduce((all, one) => all + one, 0);
  const counts = { topics: flow.topics, partitions: sum(flow.partitions), groups: sum(flow.groups), duties: flow.duties.length, losses: flow.losses };
  // Only the process that works on the flow knows what is there.
  if (flow.role !== "leader") for (const id of ["topics", "partitions", "groups"]) counts[id] = null;
  if (flow.role !== "leader" && !flow.losses) counts.losses = null;
  for (const [id, count] of Object.entries(counts)) say(at(`tab-${id}`).children[0], short(count));
}

function show() {
  if (!where.flow) {
    stream.open("");
    return;
  }
  shown?.table?.close();
  const chosen = TAB_OF[where.view] ?? where.view;
  for (const tab of tabs.children) {
    const is = tab.id === `tab-${chosen}`;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
  }
  const panel = at("panel");
  panel.setAttribute("aria-labelledby", `tab-${chosen}`);
  const query = new URLSearchParams();
  if (where.view in TABLES) {
    const shape = TABLES[where.view];
    const label = `${shape.name} of ${where.of || arrow(where.flow)}`;
    const table = new Table(where.view, label, shape.opens ? (name) => go({ view: shape.opens, of: name }) : null);
    shown = { table };
    panel.replaceChildren(...(where.of ? [inside()] : []), table.node);
  } else {
    shown = { panel: PANELS[where.view].make() };
    panel.replaceChildren(shown.panel.node);
  }
  if (where.view in TABLES || PANELS[where.view].rows) {
    for (const [key, value] of Object.entries({ kind: where.view, flow: where.flow, of: where.of })) query.set(key, value);
  }
  stream.open(String(query));
  render();
}

// Of one topic or group: the way back, and what can be done with it.
function inside() {
  const back = element("button", { type: "button" }, `← All ${TABS[where.view === "positions" ? "groups" : "topics"].toLowerCase()}`);
  back.addEventListener("click", () => go({ view: where.view === "positions" ? "groups" : "topics" }));
  const bar = element("div", { className: "inside" }, back, element("h3", {}, where.of));
  if (where.view === "partitions" && mayAct) {
    const pause = element("button", { type: "button" }, "Pause this topic…");
    const topic = where.of;
    pause.addEventListener("click", () => act("pause", exactly(topic)));
    bar.append(pause);
  }
  return bar;
}

function act(action, topics = "") {
  const flow = now?.flows.find((one) => one.flow === where.flow);
  if (flow) ask(action, flow, (said) => say(at("announce"), said), topics);
}

for (const button of at("actions").children) button.addEventListener("click", () => act(button.dataset.action));

addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, select, textarea") || !shown?.table) return;
  event.preventDefault();
  shown.table.search.focus();
});

show();
