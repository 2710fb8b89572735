// The small tables of a flow: cut-over, duties, losses, processes.

import { UNKNOWN, bytes, duration, element, keep, number, say, short } from "./format.js";

function small(label, heads, nothing) {
  const body = element("tbody");
  const none = element("p", { className: "empty" }, nothing);
  const node = element(
    "div", { className: "small" },
    element("div", { className: "across", tabIndex: 0, role: "region", "aria-label": label },
      element("table", { className: "grid", "aria-label": label },
        element("thead", {}, element("tr", {}, ...heads.map(([head, kind]) => element("th", { scope: "col", className: kind ?? "" }, head)))), body)),
    none,
  );
  return {
    node,
    fill(rows) {
      node.firstChild.hidden = !rows.length;
      none.hidden = rows.length > 0;
      keep(
        body, rows,
        () => element("tr", {}, ...heads.map(([, kind], at) => (at ? element("td", { className: kind ?? "" }) : element("th", { scope: "row", className: kind ?? "" })))),
        (line, row) => row.forEach((value, at) => say(line.cells[at], value)),
      );
    },
  };
}

function cutOver() {
  const words = element("p", { className: "verdict" });
  const list = element("ul", { className: "checks", "aria-label": "Conditions" });
  const node = element("div", { className: "prose" }, element("h3", {}, "If you cut over now"), words, list);
  return {
    node,
    update(flow) {
      const { verdict, words: said, conditions } = flow.cut_over;
      say(words, said);
      words.dataset.verdict = verdict;
      keep(
        list, conditions,
        () => element("li", {}, element("span", { className: "mark" }), element("span", { className: "condition" }), element("span", { className: "figure" })),
        (item, [name, mark, figure]) => {
          item.dataset.mark = mark;
          say(item.children[0], mark);
          say(item.children[1], name);
          say(item.children[2], figure);
        },
      );
    },
  };
}

function duties() {
  const table = small(
    "Duties",
    [["Duty"], ["Every", "num"], ["Last done", "num"], ["Took", "num"], ["Failures", "num"], ["Why it fails", "wide"]],
    "This flow has no duties other than the copying, or another process does them.",
  );
  return {
    node: table.node,
    update: (flow) =>
      table.fill(flow.duties.map((one) => [
        one.duty, duration(one.interval_s), one.ago_s == null ? "never yet" : `${duration(one.ago_s)} ago`,
        duration(one.took_s), number(one.failures), one.failing,
      ])),
  };
}

function losses() {
  const table = small(
    "Loss ledger",
    [["When"], ["Outcome"], ["Kind"], ["Partition"], ["Offsets", "num"], ["Number", "num"], ["Acknowledged", "word"],
      ["What", "wide"], ["Entry"]],
    "No entry is known to this process: the loss ledger is empty, or another process works on the flow.",
  );
  const older = element("p", { className: "hint" });
  const rows = new Map();
  return {
    node: element("div", {}, table.node, older),
    take({ reset, rows: some, gone }) {
      if (reset) rows.clear();
      for (const old of gone) rows.delete(old);
      for (const row of some) rows.set(row[0], row);
      const newest = [...rows.values()].sort((one, other) => other[2] - one[2] || one[9].localeCompare(other[9]));
      table.fill(newest.map(([, outcome, at, kind, place, first, offsets, words, acknowledged, entry]) => [
        new Date(at).toISOString().replace("T", " ").slice(0, 19) + " UTC", outcome, kind, place,
        offsets > 1 ? `${first}–${first + offsets - 1}` : String(first), offsets ? number(offsets) : UNKNOWN,
        acknowledged || "no", words, entry,
      ]));
    },
    update(flow) {
      const more = flow.losses - rows.size;
      say(older, rows.size && more > 0 ? `and ${number(more)} older: sparkmirror losses FILE lists them` : "");
    },
  };
}

function processes() {
  const facts = element("dl", { className: "facts" });
  const table = small(
    "Pumps",
    [["Task"], ["Host"], ["Partitions", "num"], ["Records", "num"], ["In flight", "num"], ["Memory", "num"],
      ["Processor", "num"], ["Fetch", "num"], ["Reported", "num"]],
    "No pump of this flow has reported to this process.",
  );
  const more = element("p", { className: "hint" });
  const settings = element("dl", { className: "facts" });
  return {
    node: element("div", {}, facts, table.node, more, element("h3", {}, "Settings"), settings),
    update(flow, process) {
      const side = (one) => `${bytes(one.bytes)} in ${short(one.requests)} requests, ${short(one.errors)} errors, throttled ${duration(one.throttle_s)}`;
      list(facts, [
        ["This process", `${process.host}:${process.pid}, ${process.mode}, version ${process.version}, up ${duration(process.up_s)}`],
        ["Role", flow.role],
        ["Works on it", flow.role === "leader" ? "this process" : flow.leader ? `${flow.leader} announced itself last` : "not known"],
        ["Processes", flow.processes == null ? "not known" : flow.processes === 1 ? "1, and none stands by" : `${flow.processes}: one works, the others stand by`],
        ["Spark", `${process.spark || "not started"}, ${process.tasks} of ${process.slots} slots in use, epoch ${flow.epoch}`],
        [`Fetched from ${flow.sides[0].alias}`, side(flow.sides[0])],
        [`Written to ${flow.sides[1].alias}`, side(flow.sides[1])],
      ]);
      table.fill(flow.pumps.map((one) => [
        String(one.task), one.host, number(one.partitions), short(one.records), number(one.in_flight),
        bytes(one.memory_bytes), duration(one.cpu_s), one.fetch_ms == null ? "–" : `${short(one.fetch_ms)} ms`,
        one.ago_s == null ? "–" : `${duration(one.ago_s)} ago`,
      ]));
      say(more, flow.more_pumps ? `and ${number(flow.more_pumps)} more` : "");
      list(settings, Object.entries(flow.settings));
    },
  };
}

function list(node, pairs) {
  keep(
    node, pairs,
    () => element("div", {}, element("dt"), element("dd")),
    (item, [name, value]) => {
      say(item.children[0], name);
      say(item.children[1], value);
    },
  );
}

export const PANELS = {
  cutover: { name: "Cut over", make: cutOver },
  duties: { name: "Duties", make: duties },
  losses: { name: "Losses", make: losses, rows: true },
  processes: { name: "Processes", make: processes },
};
