// The error of an averaged kernel against the number of elements r: equispaced turns with weights, and random ones.
"use strict";

function orbitError(root) {
  const { make, slider, path } = orbitDraw;
  const controls = make(root, "div", { class: "controls" });
  const svg = make(root, "svg", { viewBox: "0 0 560 260", role: "img", "aria-label": "error against r" });
  const note = make(root, "p", {});
  const kappa = slider(controls, "concentration κ of q", [0, 20, 0.5, 0.5], String, () => draw());
  const length = slider(controls, "lengthscale ℓ", [0.1, 1, 0.05, 0.2], String, () => draw());
  const sizes = [2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64];
  const angles = Array.from({ length: 48 }, (_, i) => (2 * Math.PI * i) / 48);
  let state = 1;
  const uniform = () => (state = (16807 * state) % 2147483647) / 2147483647; // the same draws in every picture

  // r angles from q, by rejection, each with weight 1 / r
  function random(concentration, r) {
    const drawn = [];
    while (drawn.length < r) {
      const t = 2 * Math.PI * uniform();
      if (uniform() < Math.exp(concentration * (Math.cos(t) - 1))) drawn.push(t);
    }
    return { angles: drawn, weights: drawn.map(() => 1 / r) };
  }

  // root mean square error over angles and over several draws
  function error(rules, exact) {
    const squares = rules.flatMap((rule) => {
      const average = orbitMath.averaged(rule, length());
      return angles.map((angle, i) => (average(angle) - exact[i]) ** 2);
    });
    return Math.max(Math.sqrt(squares.reduce((a, b) => a + b, 0) / squares.length), 1e-9);
  }

  function draw() {
    svg.replaceChildren();
    state = 1;
    const exact = angles.map(orbitMath.averaged(orbitMath.rule(kappa(), 192), length()));
    const lines = {
      rule: sizes.map((r) => error([orbitMath.rule(kappa(), r)], exact)),
      base: sizes.map((r) => error(Array.from({ length: 6 }, () => random(kappa(), r)), exact)),
    };
    const X = (r) => 70 + (Math.log2(r / 2) / 5) * 370;
    const Y = (value) => 20 - Math.log10(value) * 23;
    for (let power = 0; power >= -9; power -= 3) {
      make(svg, "line", { x1: 70, y1: Y(10 ** power), x2: 440, y2: Y(10 ** power), class: "guide" });
      make(svg, "text", { x: 40, y: Y(10 ** power) + 4 }, power ? `1e${power}` : "1");
    }
    for (const r of [2, 4, 8, 16, 32, 64]) make(svg, "text", { x: X(r), y: 250 }, r);
    for (const [name, values] of Object.entries(lines)) {
      make(svg, "path", { d: path(sizes.map((r, i) => [X(r), Y(values[i])])), class: `curve ${name}` });
      const text = name === "rule" ? "quadrature" : "monte_carlo";
      make(svg, "text", { x: 450, y: Y(values.at(-1)) + 4, class: `left ${name}` }, text);
    }
    const enough = sizes.find((r, i) => lines.rule[i] < lines.base.at(-1));
    note.textContent = `${enough} turns by quadrature are more accurate than 64 random ones.`;
  }
  draw();
}

document.querySelectorAll("[data-widget=orbit-error]").forEach(orbitError);
