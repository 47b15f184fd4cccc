"use strict";
(() => {
  // more points than MAX_ROUND are squares, which are faster to draw than disks
  const MAX_ZOOM = 64, MAX_ROUND = 20000, MISSING = -101;
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("map-data").textContent);
  const canvas = byId("map"), context = canvas.getContext("2d"), tooltip = byId("map-tooltip");

  // --- data: integers in base64, statistics in hundredths -----------------------------

  const decode = ([nBytes, text]) => {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return new ({ 1: Int8Array, 2: Int16Array, 4: Int32Array })[nBytes](bytes.buffer);
  };
  const x = decode(data.x), y = decode(data.y), codes = decode(data.clusters);
  const leaves = data.leaves === null ? null : decode(data.leaves);
  const rows = data.rows === null ? null : decode(data.rows);
  const statistics = {
    margin: decode(data.margins),
    probability: decode(data.probabilities),
    typicality: decode(data.typicality),
  };
  const n = x.length;
  // noise has the complement of its cluster
  const clusterOf = (i) => (codes[i] < 0 ? ~codes[i] : codes[i]);
  const rowNumber = (i) => (rows === null ? i : rows[i]);
  const rowName = (i) => data.names?.[i] ?? `Row ${rowNumber(i)}`;
  const formatStatistic = (value) => (value === MISSING ? "–" : (value / 100).toFixed(2));
  const rowValues = (i) => [
    ["cluster", codes[i] < 0 ? `noise (in cluster ${clusterOf(i)})` : codes[i]],
    ...Object.entries(statistics).map(([name, values]) => [name, formatStatistic(values[i])]),
  ];
  const findExtent = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
  const extent = [findExtent(x), findExtent(y)];

  // Return the points in the order of their keys, and where each key starts.
  const groupPoints = (nKeys, keyOf) => {
    const keys = new Int32Array(n), starts = new Int32Array(nKeys + 1);
    for (let i = 0; i < n; i++) starts[(keys[i] = keyOf(i)) + 1]++;
    for (let key = 0; key < nKeys; key++) starts[key + 1] += starts[key];
    const order = new Int32Array(n), next = starts.slice();
    for (let i = 0; i < n; i++) order[next[keys[i]]++] = i;
    return { order, starts };
  };

  // --- view: a center in units of the positions, and a zoom ---------------------------

  const view = { x: 0, y: 0, zoom: 1 };
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const unit = () => // pixels per unit
    0.46 * view.zoom * Math.min(canvas.clientWidth / extent[0], canvas.clientHeight / extent[1]);
  const toScreen = (i) => [
    canvas.clientWidth / 2 + (x[i] - view.x) * unit(),
    canvas.clientHeight / 2 - (y[i] - view.y) * unit(),
  ];
  const fromScreen = ([left, top]) => [
    view.x + (left - canvas.clientWidth / 2) / unit(),
    view.y - (top - canvas.clientHeight / 2) / unit(),
  ];
  const moveTo = (newX, newY) => {
    view.x = clamp(newX, -extent[0], extent[0]);
    view.y = clamp(newY, -extent[1], extent[1]);
    requestDraw();
  };
  const moveBy = (left, top) => moveTo(view.x - left / unit(), view.y + top / unit());
  const middle = () => [canvas.clientWidth / 2, canvas.clientHeight / 2];
  const zoomBy = (factor, screen = middle()) => {
    const [oldX, oldY] = fromScreen(screen);
    view.zoom = clamp(view.zoom * factor, 1, MAX_ZOOM);
    const [newX, newY] = fromScreen(screen);
    // the point under the pointer stays there
    if (view.zoom > 1) moveTo(view.x + oldX - newX, view.y + oldY - newY);
    else moveTo(0, 0);
    // a finger scrolls the page unless there is something to move
    canvas.style.touchAction = view.zoom > 1 ? "none" : "pan-y";
  };

  // --- colors: those of the page ------------------------------------------------------

  // layer: the cluster of each leaf; null for the fit
  let colorBy = "cluster", selected = null, layer = null, colors = [], groups = null;
  const readColors = () => {
    const names = layer === null ? ".clusters .swatch" : ".layer .swatch";
    const swatches = document.querySelectorAll(
      colorBy === "cluster" ? names : "#map-legend i");
    const noise = getComputedStyle(document.documentElement).getPropertyValue("--noise");
    const found = [...swatches].map((swatch) => getComputedStyle(swatch).backgroundColor);
    // the last is drawn on top: the lowest level
    colors = [noise, ...(colorBy === "cluster" ? found : found.reverse()), noise];
    requestDraw();
  };
  const levelOf = (hundredths, nLevels) =>
    clamp(Math.floor((hundredths / 100) * nLevels), 0, nLevels - 1);
  // Group the points by color; the first group is dimmed, the last one gray.
  const updateColors = () => {
    readColors();
    const last = colors.length - 1;
    groups = groupPoints(colors.length, (i) => {
      if (selected !== null && clusterOf(i) !== selected) return 0;
      if (colorBy === "cluster") {
        return codes[i] < 0 ? last : 1 + (layer === null ? codes[i] : layer[leaves[i]]);
      }
      const hundredths = statistics[colorBy][i];
      return hundredths === MISSING ? last : last - 1 - levelOf(hundredths, last - 1);
    });
    byId("map-legend").hidden = colorBy === "cluster";
    byId("map-statistic").textContent = colorBy;
  };

  // --- drawing: at most once per frame ------------------------------------------------

  let isRequested = false, hovered = null, pinned = null;
  const requestDraw = () => {
    if (!isRequested) requestAnimationFrame(draw);
    isRequested = true;
  };
  const drawSquare = (left, top, side) => context.fillRect(left, top, side, side);
  const drawDisk = (left, top, side) => {
    context.beginPath();
    context.arc(left + side / 2, top + side / 2, side / 2, 0, 2 * Math.PI);
    context.fill();
  };
  const drawPoints = (ratio) => {
    const { order, starts } = groups, { width, height } = canvas;
    const scale = unit() * ratio;
    const size = clamp(Math.sqrt(16000 / n), 1.3, 5) * Math.sqrt(view.zoom);
    const side = Math.max(1, Math.round(Math.min(size, 7) * ratio));
    const drawPoint = side > 3 && n <= MAX_ROUND ? drawDisk : drawSquare;
    const left = (width - side) / 2 - view.x * scale, top = (height - side) / 2 + view.y * scale;
    colors.forEach((color, key) => {
      context.fillStyle = color;
      context.globalAlpha = key === 0 ? 0.18 : 0.8;
      for (let k = starts[key]; k < starts[key + 1]; k++) {
        // whole pixels are faster
        const px = Math.round(left + x[order[k]] * scale);
        const py = Math.round(top - y[order[k]] * scale);
        if (px > -side && py > -side && px < width && py < height) {
          drawPoint(px, py, side);
        }
      }
    });
    context.globalAlpha = 1;
  };
  const drawNumbers = (ink, paper) => {
    context.font = "600 15px system-ui, sans-serif";
    context.textAlign = "center";
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.strokeStyle = paper;
    context.fillStyle = ink;
    // the numbers are those of the fit
    for (const [cluster, i] of layer === null ? data.centers : []) {
      if (selected !== null && cluster !== selected) continue;
      const [left, top] = toScreen(i);
      context.strokeText(cluster, left, top - 6);
      context.fillText(cluster, left, top - 6);
    }
  };
  const drawRing = (i, ink, paper) => {
    const [left, top] = toScreen(i);
    for (const [width, color] of [[5, paper], [2.5, ink]]) {
      context.beginPath();
      context.arc(left, top, 9, 0, 2 * Math.PI);
      context.lineWidth = width;
      context.strokeStyle = color;
      context.stroke();
    }
  };
  const draw = () => {
    isRequested = false;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(canvas.clientHeight * ratio);
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink"), paper = style.getPropertyValue("--paper");
    drawPoints(ratio);
    context.scale(ratio, ratio);
    drawNumbers(ink, paper);
    if (pinned !== null) drawRing(pinned, ink, paper);
    if (hovered !== null) drawRing(hovered, ink, paper);
    placeTooltip();
  };

  // --- points and their tooltip -------------------------------------------------------

  const shown = () => hovered ?? pinned;
  const placeTooltip = () => {
    const i = shown(), { clientWidth, clientHeight } = canvas;
    const [left, top] = i === null ? [-1, -1] : toScreen(i);
    tooltip.hidden = left < 0 || top < 0 || left > clientWidth || top > clientHeight;
    if (tooltip.hidden) return;
    const { offsetWidth, offsetHeight } = tooltip;
    const isRight = left + 14 + offsetWidth <= clientWidth;
    tooltip.style.left = `${Math.max(0, isRight ? left + 14 : left - 14 - offsetWidth)}px`;
    tooltip.style.top = `${Math.max(0, Math.min(top + 14, clientHeight - offsetHeight))}px`;
  };
  const fillTooltip = () => {
    const i = shown();
    if (i === null) return;
    const table = document.createElement("table"), name = document.createElement("b");
    name.textContent = rowName(i);
    for (const [key, value] of rowValues(i)) {
      const line = table.insertRow(), head = document.createElement("th");
      head.textContent = key;
      line.append(head);
      line.insertCell().textContent = value;
    }
    tooltip.replaceChildren(name, table);
  };
  const hover = (i) => {
    if (i === hovered) return;
    hovered = i;
    fillTooltip();
    requestDraw();
  };
  const pin = (i) => {
    [pinned, hovered] = [i, null];
    fillTooltip();
    requestDraw();
  };
  const describe = (i) =>
    `${rowName(i)}: ${rowValues(i).map(([key, value]) => `${key} ${value}`).join(", ")}.`;

  // --- nearest point, by a grid -------------------------------------------------------

  const bits = clamp(Math.round(Math.log2(n) / 2), 0, 8);
  const cellOf = (value) => (clamp(value, -32768, 32767) + 32768) >> (16 - bits);
  const grid = groupPoints(1 << (2 * bits), (i) => (cellOf(y[i]) << bits) | cellOf(x[i]));
  const findNearest = (screen, maxPixels) => {
    const [atX, atY] = fromScreen(screen), radius = maxPixels / unit();
    let nearest = null, minimum = radius * radius;
    for (let row = cellOf(atY - radius); row <= cellOf(atY + radius); row++) {
      const first = (row << bits) | cellOf(atX - radius);
      const last = (row << bits) | cellOf(atX + radius);
      for (let k = grid.starts[first]; k < grid.starts[last + 1]; k++) {
        const i = grid.order[k];
        if (selected !== null && clusterOf(i) !== selected) continue;
        const distance = (x[i] - atX) ** 2 + (y[i] - atY) ** 2;
        if (distance < minimum) [nearest, minimum] = [i, distance];
      }
    }
    return nearest;
  };

  // --- search by name or number; again for the next match ------------------------------

  let query = null, matches = [], match = 0;
  const findRows = (text) => {
    const exact = [], partial = [];
    data.names?.forEach((name, i) => {
      const lower = name?.toLowerCase();
      if (lower === text) exact.push(i);
      else if (lower?.includes(text)) partial.push(i);
    });
    const number = Number(text.match(/^(?:row\s+)?(\d+)$/)?.[1] ?? NaN);
    const numbered = rows === null ? (number < n ? number : -1) : rows.indexOf(number);
    return [...new Set([...exact, ...(numbered >= 0 ? [numbered] : []), ...partial])];
  };
  const search = () => {
    const text = byId("map-query").value.trim().toLowerCase();
    if (text === "") return;
    match = text === query ? match + 1 : 0;
    if (text !== query) [query, matches] = [text, findRows(text)];
    if (matches.length === 0) {
      byId("map-status").textContent = "No row of the map has this name or number.";
      return pin(null);
    }
    const i = matches[match % matches.length];
    if (view.zoom < 4) zoomBy(4 / view.zoom);
    moveTo(x[i], y[i]);
    pin(i);
    const count = matches.length > 1 ? `${1 + (match % matches.length)} of ${matches.length}. ` : "";
    byId("map-status").textContent = count + describe(i);
  };
  byId("map-find").addEventListener("click", search);
  byId("map-query").addEventListener("keydown", (event) => {
    if (event.key === "Enter") search();
  });

  // --- pointers: hover, click, drag, pinch --------------------------------------------

  const pointers = new Map();
  let isDragged = false;
  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const measurePinch = () => {
    const [[ax, ay], [bx, by]] = [...pointers.values()];
    return { center: [(ax + bx) / 2, (ay + by) / 2], distance: Math.hypot(ax - bx, ay - by) || 1 };
  };
  const followPointer = (event) => {
    const before = pointers.get(event.pointerId), after = position(event);
    const [left, top] = [after[0] - before[0], after[1] - before[1]];
    if (!isDragged && pointers.size === 1 && Math.hypot(left, top) < 4) return;
    isDragged = true;
    if (pointers.size === 1) moveBy(left, top);
    const old = pointers.size === 2 ? measurePinch() : null;
    pointers.set(event.pointerId, after);
    if (old === null) return;
    const { center, distance } = measurePinch();
    moveBy(center[0] - old.center[0], center[1] - old.center[1]);
    zoomBy(distance / old.distance, center);
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (pointers.size === 0) isDragged = false;
    pointers.set(event.pointerId, position(event));
    canvas.setPointerCapture(event.pointerId);
    hover(null);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (pointers.has(event.pointerId)) followPointer(event);
    else hover(findNearest(position(event), 14));
  });
  for (const type of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(type, (event) => pointers.delete(event.pointerId));
  }
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("click", (event) => {
    if (!isDragged) pin(findNearest(position(event), 18));
  });
  canvas.addEventListener("wheel", (event) => {
    // the page scrolls on if the whole map is visible
    if (event.deltaY > 0 && view.zoom === 1) return;
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 20 : 1);
    zoomBy(Math.exp(-clamp(pixels, -240, 240) / 400), position(event));
  }, { passive: false });

  // --- buttons and keys ---------------------------------------------------------------

  const reset = () => zoomBy(0);
  const showCenter = () => {
    pin(findNearest(middle(), Infinity));
    if (pinned !== null) byId("map-status").textContent = describe(pinned);
  };
  byId("map-in").addEventListener("click", () => zoomBy(1.5));
  byId("map-out").addEventListener("click", () => zoomBy(1 / 1.5));
  byId("map-reset").addEventListener("click", reset);
  const actions = {
    "+": () => zoomBy(1.5), "=": () => zoomBy(1.5), "-": () => zoomBy(1 / 1.5), "0": reset,
    ArrowLeft: () => moveBy(60, 0), ArrowRight: () => moveBy(-60, 0),
    ArrowUp: () => moveBy(0, 60), ArrowDown: () => moveBy(0, -60),
    Enter: showCenter, Escape: () => pin(null),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
    actions[event.key]();
    event.preventDefault();
  });
  byId("map-color").addEventListener("change", (event) => {
    colorBy = event.target.value;
    updateColors();
  });
  document.addEventListener("selectcluster", (event) => {
    selected = event.detail;
    updateColors();
  });

  document.addEventListener("selectlayer", (event) => {
    layer = event.detail;
    updateColors();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColors);
  new ResizeObserver(requestDraw).observe(canvas);
  zoomBy(1);
  updateColors();
})();
