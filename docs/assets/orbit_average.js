// The orbit of a point of the unit circle under rotation, weighted by q, and the averaged kernel.
// Formulas: q(t) ~ exp(kappa cos t), k(x, z) = exp(-|x - z|^2 / 2 l^2), k_q = sum_ij w_i w_j k(g_i x, g_j z).
"use strict";

const orbitMath = {
  // r equispaced angles with weights ~ q (the quadrature rule of orbit), starting at the identity
  rule(kappa, r) {
    const angles = Array.from({ length: r }, (_, i) => (2 * Math.PI * i) / r);
    const q = angles.map((t) => Math.exp(kappa * (Math.cos(t) - 1)));
    const total = q.reduce((a, b) => a + b, 0);
    return { angles, weights: q.map((value) => value / total) };
  },
  kernel: (angle, l) => Math.exp(-(1 - Math.cos(angle)) / l ** 2),
  // the function phi -> k_q at two points that are phi apart
  averaged({ angles, weights }, l) {
    const mean = (f) => weights.reduce((sum, weight, i) => sum + weight * f(angles[i]), 0);
    return (phi) => mean((a) => mean((b) => orbitMath.kernel(phi + a - b, l)));
  },
};

const orbitDraw = {
  make(parent, tag, attributes, text) {
    const svg = ["svg", "circle", "line", "path", "text", "g"].includes(tag);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
  },
  // a labelled slider; shown(value) is the text beside it
  slider(parent, label, [low, high, step, value], shown, changed) {
    const line = orbitDraw.make(parent, "label", {});
    orbitDraw.make(line, "span", {}, label);
    const input = orbitDraw.make(line, "input", { type: "range", min: low, max: high, step, value });
    const output = orbitDraw.make(line, "output", {}, shown(value));
    input.addEventListener("input", () => {
      output.textContent = shown(Number(input.value));
      changed();
    });
    return () => Number(input.value);
  },
  path: (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""),
};

function orbitAverage(root) {
  const { make, slider, path } = orbitDraw;
  const controls = make(root, "div", { class: "controls" });
  const svg = make(root, "svg", { viewBox: "0 0 560 240", role: "img", "aria-label": "orbit and averaged kernel" });
  const note = make(root, "p", {});
  const update = () => draw();
  const kappa = slider(controls, "concentration κ of q", [0, 20, 0.5, 4], String, update);
  const size = slider(controls, "elements r", [1, 32, 1, 8], String, update);
  const length = slider(controls, "lengthscale ℓ", [0.1, 1, 0.05, 0.3], String, update);
  const turn = slider(controls, "angle of x′", [-180, 180, 1, 60], (v) => `${v}°`, update);

  function draw() {
    svg.replaceChildren();
    const rule = orbitMath.rule(kappa(), size());
    const [exact, approximate] = [orbitMath.rule(kappa(), 128), rule].map((r) => orbitMath.averaged(r, length()));
    const phi = (turn() * Math.PI) / 180;
    const at = (t, radius = 90) => [120 + radius * Math.cos(t), 120 - radius * Math.sin(t)];
    make(svg, "circle", { cx: 120, cy: 120, r: 90, class: "guide" });
    for (const [centre, kind] of [[phi, "second"], [0, "first"]]) {
      rule.angles.forEach((t, i) => {
        const [cx, cy] = at(centre + t);
        make(svg, "circle", { cx, cy, r: 14 * Math.sqrt(rule.weights[i]) + 0.5, class: `disc ${kind}` });
      });
      const [x, y] = at(centre, 108);
      make(svg, "text", { x, y: y + 4, class: kind }, kind === "first" ? "x" : "x′");
    }
    const X = (angle) => 270 + ((angle + 180) / 360) * 275;
    const Y = (value) => 205 - 185 * value;
    make(svg, "line", { x1: X(-180), y1: Y(0), x2: X(180), y2: Y(0), class: "guide" });
    for (const angle of [-180, -90, 0, 90, 180]) make(svg, "text", { x: X(angle), y: 225 }, `${angle}°`);
    const degrees = Array.from({ length: 121 }, (_, i) => 3 * i - 180);
    const curve = (f, name) => make(svg, "path", {
      d: path(degrees.map((angle) => [X(angle), Y(f((angle * Math.PI) / 180))])), class: `curve ${name}` });
    curve((angle) => orbitMath.kernel(angle, length()), "base");
    curve(exact, "exact");
    curve(approximate, "rule");
    make(svg, "circle", { cx: X(turn()), cy: Y(approximate(phi)), r: 4, class: "mark" });
    const error = Math.max(...degrees.map((a) => Math.abs(exact((a * Math.PI) / 180) - approximate((a * Math.PI) / 180))));
    note.textContent = `k(x, x′) = ${orbitMath.kernel(phi, length()).toFixed(3)}, averaged by r elements ` +
      `${approximate(phi).toFixed(3)}, by the whole group ${exact(phi).toFixed(3)}; largest error ${error.toExponential(1)}`;
  }
  draw();
}

document.querySelectorAll("[data-widget=orbit-average]").forEach(orbitAverage);
