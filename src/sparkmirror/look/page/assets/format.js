// Figures as text, and elements. Not known is always "–", never 0.

export const UNKNOWN = "–";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function number(value) {
  return value == null ? UNKNOWN : whole.format(value);
}

export function short(value) {
  if (value == null) return UNKNOWN;
  if (Math.abs(value) < 100_000) return value !== 0 && Math.abs(value) < 10 ? tenths.format(value) : whole.format(value);
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return `${tenths.format(value / size)}${unit}`;
  }
  return whole.format(value);
}

export function bytes(value) {
  if (value == null) return UNKNOWN;
  for (const [size, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (value >= size) return `${tenths.format(value / size)} ${unit}`;
  }
  return `${whole.format(value)} B`;
}

export function duration(seconds) {
  if (seconds == null) return UNKNOWN;
  if (seconds < 10) return `${tenths.format(seconds)} s`;
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${rounded} s`;
  if (rounded < 3600) return `${Math.floor(rounded / 60)} min ${rounded % 60} s`;
  if (rounded < 86_400) return `${Math.floor(rounded / 3600)} h ${Math.floor((rounded % 3600) / 60)} min`;
  return `${whole.format(Math.floor(rounded / 86_400))} d ${Math.floor((rounded % 86_400) / 3600)} h`;
}

export function arrow(flow) {
  return flow.replace("->", " → ");
}

// An element with properties, attributes (those with a dash, or `role`) and children.
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role" || key === "scope" || key === "for") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

const COMMAND = /^(sparkmirror \S+|[\w./-]*kafka-[a-z-]+\.sh) /;

// Text in which `commands and keys` stand between backticks; a command can be copied.
export function sayWithCode(node, text) {
  if (node.dataset.text === text) return;
  node.dataset.text = text;
  node.replaceChildren(...text.split("`").flatMap((part, index) => {
    if (index % 2 === 0) return [part];
    const code = element("code", {}, ...part.split(/( )/).map(word));
    return COMMAND.test(part) ? [code, copyButton(part)] : [code];
  }));
}

// A word of a command is not broken at its dashes, if it fits a phone.
function word(text) {
  return text.length < 3 || text.length > 34 ? text : element("span", {}, text);
}

function copyButton(command) {
  const button = element("button", { type: "button", className: "copy", title: command, "aria-label": `Copy the command ${command}` }, "Copy");
  button.addEventListener("click", async () => {
    const done = await copied(command, button);
    button.textContent = done ? "Copied" : "Select it";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return button;
}

// Browsers give the clipboard only to pages of https or of this machine; to others the selection can be copied.
async function copied(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
    return document.execCommand("copy");
  }
}

export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Give `parent` one child for each of `items`, made once by `make` and brought up to date by `update`.
export function keep(parent, items, make, update) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  items.forEach((item, index) => {
    if (index >= parent.children.length) parent.append(make(item));
    update(parent.children[index], item);
  });
}
