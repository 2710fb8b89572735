// Pause, resume and throttle: asked in a dialog, said to the server, the answer shown.

import { arrow, bytes, element } from "./format.js";

const UNITS = { "": 1, K: 1e3, M: 1e6, G: 1e9 };

function rate(text) {
  const found = /^(\d+(?:\.\d+)?)\s*([KMG]?)$/.exec(text.trim().toUpperCase());
  if (!found || !Number(found[1])) throw new Error("Write bytes a second such as 500K or 20M.");
  return Number(found[1]) * UNITS[found[2]];
}

async function post(action, body) {
  const answer = await fetch(`actions/${action}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-sparkmirror-page": "1" },
    body: JSON.stringify(body),
  });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.detail ?? `The server answered ${answer.status}.`);
  return told.said;
}

function field(label, name, value, hint) {
  const input = element("input", { name, value, id: `field-${name}`, autocomplete: "off", spellcheck: false, "aria-describedby": `hint-${name}` });
  return [element("label", { for: input.id }, label), input, element("p", { id: `hint-${name}`, className: "hint" }, hint)];
}

const FORMS = {
  pause: {
    title: "Pause topics",
    button: "Pause them",
    fields: (flow, topics) =>
      field("Source topics", "topics", topics, "Regular expressions, comma separated. They are copied no more until you resume; nothing is lost unless the source's retention ends first."),
    body: (data) => ({ topics: names(data, "Name the topics to pause.") }),
  },
  resume: {
    title: "Resume topics",
    button: "Resume them",
    fields: (flow) =>
      flow.paused.length
        ? field("Paused expressions", "topics", flow.paused.join(", "), "Leave only the expressions to resume.")
        : [element("p", {}, "Nothing is paused in this flow.")],
    body: (data) => ({ topics: names(data, "Name the expressions to resume.") }),
    off: (flow) => !flow.paused.length,
  },
  throttle: {
    title: "Throttle",
    button: "Set the cap",
    fields: (flow) => [
      ...field("Bytes a second of the whole flow", "bytes_per_s", plain(flow.bytes_per_s_cap), "Such as 500K or 20M; empty: no cap."),
      ...field("Of that cap, for partitions that are far behind", "backfill", plain(flow.backfill_per_s_cap), "Empty: no cap of their own."),
    ],
    body: (data) => ({
      bytes_per_s: data.get("bytes_per_s").trim() ? rate(data.get("bytes_per_s")) : null,
      backfill: data.get("backfill").trim() ? rate(data.get("backfill")) : null,
    }),
  },
};

function plain(cap) {
  return cap == null ? "" : String(cap);
}

function names(data, otherwise) {
  const found = (data.get("topics") ?? "").split(",").map((one) => one.trim()).filter(Boolean);
  if (!found.length) throw new Error(otherwise);
  return found;
}

export function caps(flow) {
  const parts = [];
  if (flow.bytes_per_s_cap != null) parts.push(`capped at ${bytes(flow.bytes_per_s_cap)}/s`);
  if (flow.backfill_per_s_cap != null) parts.push(`backfill at ${bytes(flow.backfill_per_s_cap)}/s`);
  if (flow.paused.length) parts.push(`paused: ${flow.paused.join(", ")}`);
  return parts.join(" · ");
}

export function exactly(topic) {
  return topic.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

// Ask, and act once it is confirmed. `announce` is given what was said.
export function ask(action, flow, announce, topics = "") {
  const form = FORMS[action];
  const dialog = document.getElementById("dialog");
  const error = element("p", { className: "error", role: "alert" });
  const go = element("button", { type: "submit", className: "primary", disabled: Boolean(form.off?.(flow)) }, form.button);
  const away = element("button", { type: "button" }, "Cancel");
  const asked = element(
    "form", { method: "dialog" },
    element("h2", { id: "dialog-title" }, `${form.title} of ${arrow(flow.flow)}`),
    ...form.fields(flow, topics), error, element("div", { className: "buttons" }, away, go),
  );
  away.addEventListener("click", () => dialog.close());
  asked.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    error.textContent = "";
    try {
      announce(await post(action, { flow: flow.flow, ...form.body(new FormData(asked)) }));
      dialog.close();
    } catch (problem) {
      error.textContent = problem.message;
    }
    go.disabled = false;
  });
  dialog.replaceChildren(asked);
  dialog.showModal();
}
