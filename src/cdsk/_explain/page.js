"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const data = JSON.parse(find("data").textContent);
  const picture = find("picture"), tip = find("tip"), ring = find("current");
  const circles = [...picture.querySelectorAll(".cluster circle")];
  const groups = [...picture.querySelectorAll(".cluster")];
  const buttons = [...document.querySelectorAll(".clusters button")];
  const places = circles.map((c) => [Number(c.getAttribute("cx")), Number(c.getAttribute("cy"))]);
  const drawn = places.map((place) => [...place]);
  let selected = null, current = null;

  const shown = (value) => {
    if (value === null) return "–";
    if (typeof value !== "number" || Number.isInteger(value)) return String(value);
    const size = Math.abs(value);
    return size >= 1e4 && size < 1e7 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
  };
  const element = (tag, text) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const title = (i) => data.names?.[i] ?? `Row ${data.rows[i]}`;
  const figures = (i) => [
    ["cluster", data.labels[i] < 0 ? `noise, found in ${data.clusters[i]}` : data.clusters[i]],
    ["margin", data.margins[i] === null ? null : data.margins[i].toFixed(2)],
    ["typicality", data.typicality[i] === null ? null : data.typicality[i].toFixed(2)],
    ["weight", data.weights[i]],
    ...data.features.map((name, j) => [name, data.values[i][j]]),
  ];

  // --- clusters ---------------------------------------------------------------------

  const select = (cluster) => {
    selected = cluster === selected ? null : cluster;
    for (const group of groups) {
      const other = selected !== null && Number(group.dataset.cluster) !== selected;
      group.classList.toggle("dimmed", other);
    }
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.cluster) === selected));
    }
    const rows = document.querySelector(`details[data-cluster="${selected}"]`);
    if (rows !== null) rows.open = true;
    find("clear").hidden = selected === null;
    find("said").textContent =
      selected === null ? "All clusters are shown." : `The clusters other than ${selected} are dimmed.`;
  };
  for (const button of buttons) {
    button.addEventListener("click", () => select(Number(button.dataset.cluster)));
  }
  find("clear").addEventListener("click", () => select(null));

  // --- points -----------------------------------------------------------------------

  const point = (i) => {
    current = i;
    tip.hidden = i === null;
    ring.classList.toggle("seen", i !== null && drawn[i] !== null);
    if (i === null) return;
    const [x, y] = drawn[i] ?? [0, 0];
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", y);
    const table = element("table");
    for (const [name, value] of figures(i)) {
      const line = element("tr");
      line.append(element("th", name), element("td", shown(value)));
      table.append(line);
    }
    tip.replaceChildren(element("b", title(i)), table);
    const box = picture.getBoundingClientRect(), unit = box.width / 1000;
    const left = x * unit + 14, top = y * unit + 14;
    const right = left + tip.offsetWidth > box.width;
    tip.style.left = `${Math.max(0, right ? x * unit - 14 - tip.offsetWidth : left)}px`;
    tip.style.top = `${Math.max(0, Math.min(top, box.height - tip.offsetHeight))}px`;
  };
  const nearest = (event, within) => {
    const box = picture.getBoundingClientRect(), unit = 1000 / box.width;
    const x = (event.clientX - box.left) * unit, y = (event.clientY - box.top) * unit;
    let best = null, least = (within * unit) ** 2;
    drawn.forEach((place, i) => {
      if (place === null || (selected !== null && data.clusters[i] !== selected)) return;
      const far = (place[0] - x) ** 2 + (place[1] - y) ** 2;
      if (far < least) [best, least] = [i, far];
    });
    return best;
  };
  picture.addEventListener("pointermove", (event) => point(nearest(event, 18)));
  picture.addEventListener("pointerleave", () => point(null));
  picture.addEventListener("click", (event) => {
    const dimmed = event.target.closest(".dimmed");
    const i = nearest(event, 18);
    point(i);
    if (dimmed !== null) select(Number(dimmed.dataset.cluster));
    else if (i !== null) select(data.clusters[i]);
    else if (selected !== null) select(null);
  });

  // --- keys: points are in order of their cluster, and of their typicality in it ------

  const firsts = [];
  data.clusters.forEach((cluster, i) => {
    if (i === 0 || cluster !== data.clusters[i - 1]) firsts.push(i);
  });
  const move = (key) => {
    const last = circles.length - 1;
    if (current === null) return 0;
    const group = firsts.findLastIndex((first) => first <= current);
    switch (key) {
      case "ArrowRight": return Math.min(current + 1, last);
      case "ArrowLeft": return Math.max(current - 1, 0);
      case "ArrowDown": return firsts[Math.min(group + 1, firsts.length - 1)];
      case "ArrowUp": return firsts[Math.max(group - 1, 0)];
      case "Home": return 0;
      default: return last;
    }
  };
  picture.addEventListener("keydown", (event) => {
    if (/^(Arrow|Home$|End$)/.test(event.key)) {
      point(move(event.key));
      const parts = figures(current).map(([name, value]) => `${name} ${shown(value)}`);
      find("said").textContent = `${title(current)}: ${parts.join(", ")}`;
    } else if (event.key === "Enter" || event.key === " ") {
      if (current !== null) select(data.clusters[current]);
    } else if (event.key === "Escape") {
      point(null);
      select(null);
    } else return;
    event.preventDefault();
  });
  picture.addEventListener("blur", () => point(null));

  // --- axes: the embedding, or two features --------------------------------------------

  const across = find("across"), up = find("up");
  const scale = (j, from, to, label) => {
    const values = data.values.map((row) => row[j]);
    const known = values.filter((value) => value !== null);
    const low = known.reduce((a, b) => Math.min(a, b), Infinity);
    const high = known.reduce((a, b) => Math.max(a, b), -Infinity);
    const missing = values.length - known.length;
    label.textContent = `${data.features[j]}, ${shown(low)} to ${shown(high)}` +
      (missing > 0 ? `; ${missing} missing, not drawn` : "");
    // half of each, so that no difference overflows
    const middle = low / 2 + high / 2, half = high / 2 - low / 2 || 1;
    return values.map((value) =>
      value === null ? null : (from + to) / 2 + ((to - from) / 2) * ((value - middle) / half));
  };
  const draw = () => {
    const byFeatures = across.value !== "" && up.value !== "";
    picture.classList.toggle("drawn-by-features", byFeatures);
    find("by-embedding").hidden = byFeatures;
    find("axis-across").textContent = find("axis-up").textContent = "";
    const x = byFeatures && scale(Number(across.value), 70, 970, find("axis-across"));
    const y = byFeatures && scale(Number(up.value), 930, 30, find("axis-up"));
    circles.forEach((circle, i) => {
      drawn[i] = byFeatures ? [x[i], y[i]] : places[i];
      if (drawn[i].includes(null)) drawn[i] = null;
      circle.classList.toggle("missing", drawn[i] === null);
      if (drawn[i] === null) return;
      circle.setAttribute("cx", drawn[i][0]);
      circle.setAttribute("cy", drawn[i][1]);
    });
    picture.setAttribute("aria-label", byFeatures
      ? `Points by ${data.features[across.value]} and ${data.features[up.value]}`
      : "Points of the embedding");
    point(null);
  };
  if (across !== null) {
    const options = [...across.options].map((option) => option.value);
    // the embedding has both axes, and so have features
    const follow = (changed, other, preferred) => {
      if (changed.value === "") other.value = "";
      else if (other.value === "") {
        const different = options.filter((value) => value !== "" && value !== changed.value);
        other.value = different[0] ?? preferred;
      }
      draw();
    };
    across.addEventListener("change", () => follow(across, up, across.value));
    up.addEventListener("change", () => follow(up, across, up.value));
  }

  // --- the same as a table, made when it is asked for -----------------------------------

  const all = find("all-points");
  all.addEventListener("toggle", () => {
    const place = all.querySelector(".scroll");
    if (!all.open || place.childElementCount > 0) return;
    const table = element("table"), head = element("thead"), body = element("tbody");
    const names = ["row", ...figures(0).map(([name]) => name)];
    const line = element("tr");
    for (const name of names) {
      const cell = element("th", name);
      cell.scope = "col";
      line.append(cell);
    }
    head.append(line);
    circles.forEach((_, i) => {
      const row = element("tr"), cell = element("th", title(i));
      cell.scope = "row";
      row.append(cell, ...figures(i).map(([, value]) => element("td", shown(value))));
      body.append(row);
    });
    table.append(head, body);
    place.append(table);
  });

  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("main details:not(#all-points)")) part.open = true;
  });
})();
