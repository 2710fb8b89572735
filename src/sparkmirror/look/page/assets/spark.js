// Small curves of lag: over what was seen of the last two minutes. What was not seen is not drawn.

const SVG = "http://www.w3.org/2000/svg";
const SPAN_MS = 120_000;
const LEAST_MS = 30_000;

export class History {
  constructor() {
    this.points = [];
  }

  add(at, value) {
    const { points } = this;
    const last = points.at(-1);
    if (last && last[1] === value && points.length > 1 && points.at(-2)[1] === value) last[0] = at;
    else points.push([at, value]);
    while (points.length > 2 && points[1][0] < at - SPAN_MS) points.shift();
    if (points.length > 240) points.splice(0, points.length - 240);
  }
}

export function sparkline(width, height) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "spark");
  svg.setAttribute("aria-hidden", "true");
  svg.append(document.createElementNS(SVG, "path"));
  return svg;
}

export function draw(svg, history, now) {
  const { width, height } = svg.viewBox.baseVal;
  let path = "";
  if (history) {
    const top = Math.max(1, ...history.points.map((point) => point[1] ?? 0));
    const span = Math.min(Math.max(now - history.points[0][0], LEAST_MS), SPAN_MS);
    let pen = false;
    let before = null;
    for (const [at, value] of [...history.points, [now, history.points.at(-1)?.[1] ?? null]]) {
      const x = (width * (at - now + span)) / span;
      if (value == null) pen = false;
      else {
        const y = height - 1 - ((height - 2) * value) / top;
        if (x >= 0) {
          if (!pen && before) path += `M0 ${before}`;
          path += `${pen || before ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
          pen = true;
          before = null;
        } else before = y.toFixed(1);
      }
    }
  }
  const line = svg.firstChild;
  if (line.getAttribute("d") !== path) line.setAttribute("d", path);
}
