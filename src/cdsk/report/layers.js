"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("layers-data").textContent);
  const nLeaves = data.clusters.length;
  const slider = byId("layer"), body = byId("layer-clusters"), cut = byId("cut");
  const nodes = [...document.querySelectorAll(".tree .node")];
  const formatNumber = (value) => (value === null ? "–" : value.toFixed(2));

  // The color of a cluster, as on the rest of the page.
  const colorOf = (cluster) => {
    const hue = `var(--c${cluster % 10})`, shade = Math.floor(cluster / 10);
    if (shade === 0) return hue;
    return `color-mix(in srgb,${hue},var(--${shade % 2 ? "ink" : "paper"}) 35%)`;
  };
  // Return the node of each leaf in the layer of k clusters.
  const cutTree = (k) => {
    const node = data.clusters.map((_, leaf) => leaf);
    data.children.slice(0, nLeaves - k).forEach((children, i) => {
      node.forEach((own, leaf) => {
        if (children.includes(own)) node[leaf] = nLeaves + i;
      });
    });
    return node;
  };
  const addCell = (row, tag, text) => {
    const cell = document.createElement(tag);
    cell.textContent = text;
    row.append(cell);
    return cell;
  };
  const addRow = (cluster, node, own) => {
    const row = document.createElement("tr");
    row.style.setProperty("--color", colorOf(cluster));
    const head = addCell(row, "th", ` Cluster ${cluster}`), swatch = document.createElement("span");
    head.scope = "row";
    swatch.className = "swatch";
    head.prepend(swatch);
    addCell(row, "td", data.sizes[node]);
    const clusters = [...new Set(own.map((leaf) => data.clusters[leaf]))];
    const isPart = own.length < data.clusters.filter((y) => y === clusters[0]).length;
    addCell(row, "td", (isPart ? "part of " : "") + clusters.join(", "));
    addCell(row, "td", formatNumber(data.persistence[node]));
    body.append(row);
  };
  const show = (k) => {
    const node = cutTree(k), found = [...new Set(node)];
    const groups = node.map((own) => found.indexOf(own));
    body.replaceChildren();
    found.forEach((own, cluster) => {
      addRow(cluster, own, data.clusters.map((_, i) => i).filter((i) => node[i] === own));
    });
    // nodes below the cut have the color of their cluster, those above it have none
    const firstLeaf = data.clusters.map((_, leaf) => leaf);
    data.children.forEach(([a, b]) => firstLeaf.push(Math.min(firstLeaf[a], firstLeaf[b])));
    nodes.forEach((element, i) => {
      const isBelow = i < 2 * nLeaves - k;
      element.style.setProperty("--color", isBelow ? colorOf(groups[firstLeaf[i]]) : "var(--ink)");
    });
    for (const end of ["x1", "x2"]) cut.setAttribute(end, data.cuts[k - 2]);
    slider.value = k;
    byId("layer-name").textContent = k === data.fit ? `${k} (the fit)` : k;
    const detail = k === data.fit ? null : groups;
    document.dispatchEvent(new CustomEvent("selectlayer", { detail }));
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  for (const button of document.querySelectorAll("[data-layer]")) {
    button.addEventListener("click", () => show(Number(button.dataset.layer)));
  }
  show(Number(slider.value));
})();
