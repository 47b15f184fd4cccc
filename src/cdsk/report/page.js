"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const scatter = byId("scatter"), tooltip = byId("tooltip"), ring = byId("current");
  const circles = [...scatter.querySelectorAll(".cluster circle")];
  const groups = [...scatter.querySelectorAll(".cluster")];
  const buttons = [...document.querySelectorAll(".clusters button")];
  const layout = circles.map((c) => [Number(c.getAttribute("cx")), Number(c.getAttribute("cy"))]);
  // of the current axes; null if a coordinate is missing
  const positions = layout.map((position) => [...position]);
  let selected = null, current = null;

  const format = (value) => {
    if (value === null) return "–";
    if (typeof value !== "number" || Number.isInteger(value)) return String(value);
    const size = Math.abs(value);
    return size >= 1e4 && size < 1e7 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
  };
  const createElement = (tag, text) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const rowName = (i) => data.names?.[i] ?? `Row ${data.rows[i]}`;
  const rowValues = (i) => [
    ["cluster", data.labels[i] < 0 ? `noise (in cluster ${data.clusters[i]})` : data.clusters[i]],
    ["margin", data.margins[i] === null ? null : data.margins[i].toFixed(2)],
    ["typicality", data.typicality[i] === null ? null : data.typicality[i].toFixed(2)],
    ["weight", data.weights[i]],
    ...data.features.map((name, j) => [name, data.values[i][j]]),
  ];

  // --- selected cluster ---------------------------------------------------------------

  const selectCluster = (cluster) => {
    selected = cluster === selected ? null : cluster;
    for (const group of groups) {
      const isDimmed = selected !== null && Number(group.dataset.cluster) !== selected;
      group.classList.toggle("dimmed", isDimmed);
    }
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.cluster) === selected));
    }
    const details = document.querySelector(`details[data-cluster="${selected}"]`);
    if (details !== null) details.open = true;
    byId("clear").hidden = selected === null;
    document.dispatchEvent(new CustomEvent("selectcluster", { detail: selected }));
    byId("status").textContent =
      selected === null ? "All clusters are shown." : `All clusters except ${selected} are dimmed.`;
  };
  for (const button of buttons) {
    button.addEventListener("click", () => selectCluster(Number(button.dataset.cluster)));
  }
  byId("clear").addEventListener("click", () => selectCluster(null));

  // --- current point and its tooltip --------------------------------------------------

  const showPoint = (i) => {
    current = i;
    tooltip.hidden = i === null;
    ring.classList.toggle("visible", i !== null && positions[i] !== null);
    if (i === null) return;
    const [x, y] = positions[i] ?? [0, 0];
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", y);
    const table = createElement("table");
    for (const [name, value] of rowValues(i)) {
      const row = createElement("tr");
      row.append(createElement("th", name), createElement("td", format(value)));
      table.append(row);
    }
    tooltip.replaceChildren(createElement("b", rowName(i)), table);
    const box = scatter.getBoundingClientRect(), unit = box.width / 1000;
    const left = x * unit + 14, top = y * unit + 14;
    const overflows = left + tooltip.offsetWidth > box.width;
    tooltip.style.left =
      `${Math.max(0, overflows ? x * unit - 14 - tooltip.offsetWidth : left)}px`;
    tooltip.style.top = `${Math.max(0, Math.min(top, box.height - tooltip.offsetHeight))}px`;
  };
  const findNearest = (event, maxDistance) => {
    const box = scatter.getBoundingClientRect(), unit = 1000 / box.width;
    const x = (event.clientX - box.left) * unit, y = (event.clientY - box.top) * unit;
    let nearest = null, minimum = (maxDistance * unit) ** 2;
    positions.forEach((position, i) => {
      if (position === null || (selected !== null && data.clusters[i] !== selected)) return;
      const distance = (position[0] - x) ** 2 + (position[1] - y) ** 2;
      if (distance < minimum) [nearest, minimum] = [i, distance];
    });
    return nearest;
  };
  scatter.addEventListener("pointermove", (event) => showPoint(findNearest(event, 18)));
  scatter.addEventListener("pointerleave", () => showPoint(null));
  scatter.addEventListener("click", (event) => {
    const dimmed = event.target.closest(".dimmed");
    const i = findNearest(event, 18);
    showPoint(i);
    if (dimmed !== null) selectCluster(Number(dimmed.dataset.cluster));
    else if (i !== null) selectCluster(data.clusters[i]);
    else if (selected !== null) selectCluster(null);
  });

  // --- keyboard: points are sorted by cluster, then by typicality ---------------------

  const firstPoints = [];
  data.clusters.forEach((cluster, i) => {
    if (i === 0 || cluster !== data.clusters[i - 1]) firstPoints.push(i);
  });
  const findNext = (key) => {
    const last = circles.length - 1;
    if (current === null) return 0;
    const group = firstPoints.findLastIndex((first) => first <= current);
    switch (key) {
      case "ArrowRight": return Math.min(current + 1, last);
      case "ArrowLeft": return Math.max(current - 1, 0);
      case "ArrowDown": return firstPoints[Math.min(group + 1, firstPoints.length - 1)];
      case "ArrowUp": return firstPoints[Math.max(group - 1, 0)];
      case "Home": return 0;
      default: return last;
    }
  };
  scatter.addEventListener("keydown", (event) => {
    if (/^(Arrow|Home$|End$)/.test(event.key)) {
      showPoint(findNext(event.key));
      const values = rowValues(current).map(([name, value]) => `${name} ${format(value)}`);
      byId("status").textContent = `${rowName(current)}: ${values.join(", ")}`;
    } else if (event.key === "Enter" || event.key === " ") {
      if (current !== null) selectCluster(data.clusters[current]);
    } else if (event.key === "Escape") {
      showPoint(null);
      selectCluster(null);
    } else return;
    event.preventDefault();
  });
  scatter.addEventListener("blur", () => showPoint(null));

  // --- axes: the embedding, or two features -------------------------------------------

  const xAxis = byId("x-axis"), yAxis = byId("y-axis");
  const scaleFeature = (j, from, to, label) => {
    const values = data.values.map((row) => row[j]);
    const known = values.filter((value) => value !== null);
    const low = known.reduce((a, b) => Math.min(a, b), Infinity);
    const high = known.reduce((a, b) => Math.max(a, b), -Infinity);
    const nMissing = values.length - known.length;
    label.textContent = `${data.features[j]}, ${format(low)} to ${format(high)}` +
      (nMissing > 0 ? `; ${nMissing} missing values not plotted` : "");
    // halves, so that no difference overflows
    const middle = low / 2 + high / 2, half = high / 2 - low / 2 || 1;
    return values.map((value) =>
      value === null ? null : (from + to) / 2 + ((to - from) / 2) * ((value - middle) / half));
  };
  const updateAxes = () => {
    const byFeatures = xAxis.value !== "" && yAxis.value !== "";
    scatter.classList.toggle("feature-axes", byFeatures);
    byId("embedding-caption").hidden = byFeatures;
    byId("x-label").textContent = byId("y-label").textContent = "";
    const x = byFeatures && scaleFeature(Number(xAxis.value), 70, 970, byId("x-label"));
    const y = byFeatures && scaleFeature(Number(yAxis.value), 930, 30, byId("y-label"));
    circles.forEach((circle, i) => {
      positions[i] = byFeatures ? [x[i], y[i]] : layout[i];
      if (positions[i].includes(null)) positions[i] = null;
      circle.classList.toggle("missing", positions[i] === null);
      if (positions[i] === null) return;
      circle.setAttribute("cx", positions[i][0]);
      circle.setAttribute("cy", positions[i][1]);
    });
    scatter.setAttribute("aria-label", byFeatures
      ? `Points by ${data.features[xAxis.value]} and ${data.features[yAxis.value]}`
      : "Points in the embedding");
    showPoint(null);
  };
  if (xAxis !== null) {
    const options = [...xAxis.options].map((option) => option.value);
    // both axes show features, or both the embedding
    const synchronize = (changed, other) => {
      if (changed.value === "") other.value = "";
      else if (other.value === "") {
        const different = options.filter((value) => value !== "" && value !== changed.value);
        other.value = different[0] ?? changed.value;
      }
      updateAxes();
    };
    xAxis.addEventListener("change", () => synchronize(xAxis, yAxis));
    yAxis.addEventListener("change", () => synchronize(yAxis, xAxis));
  }

  // --- table of all points, created when it is opened ---------------------------------

  const allPoints = byId("all-points");
  allPoints.addEventListener("toggle", () => {
    const container = allPoints.querySelector(".scroll");
    if (!allPoints.open || container.childElementCount > 0) return;
    const table = createElement("table");
    const head = createElement("thead"), body = createElement("tbody");
    const header = createElement("tr");
    for (const name of ["row", ...rowValues(0).map(([name]) => name)]) {
      const cell = createElement("th", name);
      cell.scope = "col";
      header.append(cell);
    }
    head.append(header);
    circles.forEach((_, i) => {
      const row = createElement("tr"), cell = createElement("th", rowName(i));
      cell.scope = "row";
      row.append(cell, ...rowValues(i).map(([, value]) => createElement("td", format(value))));
      body.append(row);
    });
    table.append(head, body);
    container.append(table);
  });

  window.addEventListener("beforeprint", () => {
    const details = document.querySelectorAll("main details:not(#all-points)");
    for (const element of details) element.open = true;
  });
})();
