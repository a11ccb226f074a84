// Tables: where time goes, and what links carry.

function number(value) {
  return Number(value.toPrecision(3)).toString();
}

function amount(bytes) {
  const power = Math.min(4, Math.floor(Math.log2(Math.max(bytes, 1)) / 10));
  return `${number(bytes / 1024 ** power)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

/** Rows of [text, amount, share of 1 for the bar]. */
function addTable(panel, heading, rows) {
  if (rows.length === 0) return;
  const title = document.createElement("h2");
  title.textContent = heading;
  const table = document.createElement("table");
  for (const [text, value, share] of rows) {
    const row = table.insertRow();
    const label = row.insertCell();
    label.textContent = label.title = text;
    const cell = row.insertCell();
    cell.textContent = value;
    cell.className = "number";
    const bar = document.createElement("span");
    bar.className = "bar";
    bar.style.width = `${Math.round(60 * Math.min(1, share))}px`;
    row.insertCell().append(bar);
  }
  panel.append(title, table);
}

/** Time of thread blocks by what keyOf(span) says, largest first. */
function timeBy(model, layer, keyOf) {
  const times = new Map();
  for (const span of layer.shownSpans()) {
    const key = model.lanes[layer.lane[span]].isBlock ? keyOf(span) : -1;
    if (key >= 0 && layer.end[span] > layer.begin[span]) times.set(key, (times.get(key) || 0) + layer.end[span] - layer.begin[span]);
  }
  return [...times].sort((a, b) => b[1] - a[1]);
}

function addTimes(panel, model, layer) {
  const [from, to] = layer.extent();
  const blocks = layer.byLane.filter((lane, i) => model.lanes[i].isBlock && lane.spans.length).length;
  const whole = (to - from) * Math.max(1, blocks);
  const rows = keyOf => timeBy(model, layer, keyOf).slice(0, 12).map(
    ([key, time]) => [layer.texts[key], `${number(100 * time / whole)} %`, time / whole]);
  const part = layer.tilesShown < layer.tiles
    ? `; shown are ${layer.tilesShown} of ${layer.tiles} tiles, ${number(to - from)} us` : "";
  addTable(panel, `${layer.name}: ${number(layer.duration())} us${part}; of thread blocks' time`,
           rows(span => layer.nameOf[span]));
  addTable(panel, `${layer.name}: by source line`, rows(span => layer.sourceOf[span]));
}

function addLinks(panel, model, layer) {
  const duration = layer.duration(), busiest = [...layer.links].sort((a, b) => b[2] - a[2]);
  addTable(panel, `${layer.name}: links, bytes and busy`, busiest.slice(0, 40).map(
    ([name, bytes, busy]) => [name, `${amount(bytes)}, ${number(100 * busy / duration)} %`,
                              busy / duration]));
  if (layer.links.length > 0) return;
  const counts = new Map();
  for (const {from, to} of layer.arrows) {
    const way = [from, to].map(span => model.lanes[layer.lane[span]].rank).join(" to ");
    counts.set(way, (counts.get(way) || 0) + 1);
  }
  const most = Math.max(1, ...counts.values());
  addTable(panel, `${layer.name}: messages from rank to rank`,
           [...counts].sort((a, b) => b[1] - a[1]).slice(0, 40).map(
             ([way, count]) => [way, String(count), count / most]));
}

function fillPanels(panel, model) {
  panel.replaceChildren();
  for (const layer of model.layers) addTimes(panel, model, layer);
  for (const layer of model.layers) addLinks(panel, model, layer);
}

/** What the mouse says of a span. */
function describe(model, {layer, span}) {
  const lane = model.lanes[layer.lane[span]];
  const lines = [`rank ${lane.rank}, ${lane.name}: ${layer.texts[layer.nameOf[span]]}`,
                 layer.texts[layer.textOf[span]]];
  if (layer.sourceOf[span] >= 0) lines.push(layer.texts[layer.sourceOf[span]]);
  lines.push(`${layer.name}: ${number(layer.end[span] - layer.begin[span])} us, from ` +
             `${layer.begin[span].toFixed(3)} us on`);
  if (layer.invocationOf[span] >= 0) lines.push(layer.invocations[layer.invocationOf[span]]);
  return lines.join("\n");
}
