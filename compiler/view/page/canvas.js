// Drawing: only what is visible, and of what is narrower than a pixel one in each.

const LABEL = 150, TOP = 26, BAR = 16, GAP = 4, RANK_GAP = 8, MOMENT = 2, MOST_ARROWS = 3000;
const COLOURS = {send: "#4e79a7", recv: "#59a14f", copy: "#9c9ede", reduce: "#e15759",
                 recvReduceCopy: "#e15759", recvCopySend: "#76b7b2", recvReduceSend: "#f28e2b",
                 recvReduceCopySend: "#edc948", loadReduceStore: "#b07aa1", signal: "#4e79a7",
                 wait: "#9c755f", visit: "#c5d5c5", callback: "#ff9da7", mark: "#d62728"};
const WAIT = "#dadada", OTHER = "#bab0ac", INK = "#333", ARROW_INK = "#000";

function colourOf(name) {
  return name.startsWith("wait:") ? WAIT : COLOURS[name] || OTHER;
}

class Picture {
  constructor(model, canvas) {
    Object.assign(this, {model, canvas, context: canvas.getContext("2d"), top: 0, hovered: null});
    this.colours = model.layers.map(layer => layer.texts.map(colourOf));
    this.isWait = model.layers.map(layer => layer.texts.map(text => text.startsWith("wait:")));
    this.showRanks(() => true);
    this.fit();
    this.fitCanvas();
  }

  // Geometry: times to x, lanes to y.

  showRanks(isShown) {
    this.laneTop = new Float64Array(this.model.lanes.length).fill(-1);
    let y = 0, rank = -1;
    this.model.lanes.forEach((lane, i) => {
      if (!isShown(lane.rank)) return;
      if (rank >= 0 && lane.rank !== rank) y += RANK_GAP;
      rank = lane.rank;
      this.laneTop[i] = y;
      y += BAR * this.model.layers.length + GAP;
    });
    this.contentHeight = y;
    this.shown = Array.from(this.laneTop.keys()).filter(i => this.laneTop[i] >= 0);
  }
  fit() {
    [this.from, this.to] = this.model.extent();
    const margin = (this.to - this.from) * 0.01;
    this.limits = [this.from -= margin, this.to += margin];
    this.top = 0;
  }
  xOf(time) { return LABEL + (time - this.from) * (this.width - LABEL) / (this.to - this.from); }
  timeAt(x) { return this.from + (x - LABEL) * (this.to - this.from) / (this.width - LABEL); }
  /** The top of a layer's row in a lane; NaN if the lane is not shown. */
  yOf(lane, layer) {
    return this.laneTop[lane] < 0 ? NaN : TOP + this.laneTop[lane] - this.top + layer * BAR;
  }
  /** The lanes that are at least partly visible. */
  visibleLanes() {
    const height = BAR * this.model.layers.length;
    const first = firstWhere(this.shown.length, i => this.laneTop[this.shown[i]] + height > this.top);
    const last = firstWhere(this.shown.length,
                            i => this.laneTop[this.shown[i]] > this.top + this.height - TOP);
    return this.shown.slice(first, last);
  }

  scrollTo(top) {
    this.top = Math.max(0, Math.min(top, this.contentHeight - this.height + TOP + 20));
  }
  moveBy(time) {
    const length = this.to - this.from;
    this.from = Math.max(this.limits[0], Math.min(this.from + time, this.limits[1] - length));
    this.to = this.from + length;
  }
  zoom(factor, x) {
    const at = this.timeAt(x), whole = this.limits[1] - this.limits[0];
    const length = Math.min(whole, Math.max(whole * 1e-7, (this.to - this.from) * factor));
    const share = (at - this.from) / (this.to - this.from);
    this.from = at - share * length;
    this.to = this.from + length;
    this.moveBy(0);
  }

  // Drawing.

  /** Asks the document for the size once a frame. */
  fitCanvas() {
    const {canvas} = this, scale = window.devicePixelRatio || 1;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    if (canvas.width !== Math.round(this.width * scale) || canvas.height !== Math.round(this.height * scale)) {
      canvas.width = Math.round(this.width * scale);
      canvas.height = Math.round(this.height * scale);
    }
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
  }

  draw() {
    const {context} = this;
    this.fitCanvas();
    context.fillStyle = "#fff";
    context.fillRect(0, 0, this.width, this.height);
    const lanes = this.visibleLanes();
    this.drawAxis();
    context.save();
    context.beginPath();
    context.rect(LABEL, TOP, this.width - LABEL, this.height - TOP);
    context.clip();
    for (const lane of lanes)
      this.model.layers.forEach((layer, number) => this.drawLane(layer, number, lane));
    this.hidden = 0;
    this.model.layers.forEach((layer, number) => this.drawArrows(layer, number));
    this.drawHovered();
    context.restore();
    this.drawLabels(lanes);
  }

  drawLane(layer, number, lane) {
    const {context} = this, {spans, ended} = layer.byLane[lane], y = this.yOf(lane, number);
    const perPixel = (this.to - this.from) / (this.width - LABEL);
    let i = firstWhere(spans.length, at => ended[at] >= this.from);
    while (i < spans.length && layer.begin[spans[i]] <= this.to) {
      const span = spans[i], name = layer.nameOf[span];
      const x = Math.max(this.xOf(layer.begin[span]), LABEL - 2);
      const width = Math.min(this.xOf(layer.end[span]), this.width + 2) - x;
      const inset = this.isWait[number][name] ? 5 : 1;
      context.fillStyle = this.colours[number][name];
      const least = layer.end[span] > layer.begin[span] ? 1 : MOMENT;
      context.fillRect(x, y + inset, Math.max(width, least), BAR - 2 * inset);
      ++i;
      if (width >= 1) continue;
      // Others of this pixel are left out, but for one that goes on beyond it.
      const next = layer.begin[span] + perPixel;
      const after = i + firstWhere(spans.length - i, at => layer.begin[spans[i + at]] >= next);
      i = after > i && ended[after - 1] > next ? Math.max(i, after - 1) : after;
    }
  }

  /** [x, y, x, y] of an arrow; null if one of its ends is in a lane that is not shown. */
  lineOf(layer, number, arrow) {
    const y = [arrow.from, arrow.to].map(span => this.yOf(layer.lane[span], number) + BAR / 2);
    if (Number.isNaN(y[0] + y[1])) return null;
    return [this.xOf(arrow.start), y[0], this.xOf(layer.begin[arrow.to]), y[1]];
  }
  isOutside(line) {
    return Math.max(line[1], line[3]) < TOP || Math.min(line[1], line[3]) > this.height;
  }

  drawArrows(layer, number) {
    const [low, high] = layer.arrowsWithin(this.from, this.to);
    const lines = [];
    if (high - low <= 3 * MOST_ARROWS)
      for (let i = low; i < high; ++i) {
        const line = this.lineOf(layer, number, layer.arrows[i]);
        if (line && !this.isOutside(line)) lines.push([line, layer.arrows[i].isSignal]);
      }
    if (high - low > 3 * MOST_ARROWS || lines.length > MOST_ARROWS) this.hidden += high - low;
    else for (const [line, isSignal] of lines) this.drawArrow(line, isSignal, 1);
  }

  drawArrow([x0, y0, x1, y1], isSignal, width) {
    const {context} = this;
    context.strokeStyle = context.fillStyle = ARROW_INK;
    context.lineWidth = width;
    context.setLineDash(isSignal ? [3, 2] : []);
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
    context.setLineDash([]);
    const angle = Math.atan2(y1 - y0, x1 - x0), size = 5 + width;
    context.beginPath();
    context.moveTo(x1, y1);
    for (const side of [-0.4, 0.4])
      context.lineTo(x1 - size * Math.cos(angle + side), y1 - size * Math.sin(angle + side));
    context.closePath();
    context.fill();
  }

  drawHovered() {
    if (!this.hovered) return;
    const {layer, number, span} = this.hovered, {context} = this;
    const x = this.xOf(layer.begin[span]);
    context.strokeStyle = INK;
    context.lineWidth = 1.5;
    context.strokeRect(x, this.yOf(layer.lane[span], number) + 1,
                       Math.max(1, this.xOf(layer.end[span]) - x), BAR - 2);
    for (const arrow of layer.arrows)
      if (arrow.from === span || arrow.to === span) {
        const line = this.lineOf(layer, number, arrow);
        if (line) this.drawArrow(line, arrow.isSignal, 2);
      }
  }

  /** Some ten ticks at round numbers. */
  drawAxis() {
    const {context} = this, length = this.to - this.from;
    let step = 10 ** Math.floor(Math.log10(length / 10));
    step *= [1, 2, 5, 10].find(factor => length / (step * factor) <= 12);
    context.font = "11px sans-serif";
    for (let i = Math.ceil(this.from / step); i * step <= this.to; ++i) {
      const x = this.xOf(i * step);
      context.fillStyle = "#e4e4e4";
      context.fillRect(x, TOP - 8, 1, this.height);
      context.fillStyle = "#777";
      context.fillText(`${+(i * step).toPrecision(10)} us`, x + 3, TOP - 10);
    }
  }

  drawLabels(lanes) {
    const {context, model} = this;
    context.fillStyle = INK;
    context.font = "12px sans-serif";
    for (const lane of lanes) {
      const {rank, name} = model.lanes[lane], y = this.yOf(lane, 0);
      if (y + BAR < TOP) continue;
      context.fillText(`${rank} \u00b7 ${name}`.slice(0, 24), 8, y + BAR - 4);
      if (model.layers.length > 1) context.fillText("measured", 30, y + 2 * BAR - 4);
    }
  }

  /** What is drawn at a point of the canvas. */
  at(x, y) {
    if (x < LABEL || y < TOP) return null;
    const lane = this.visibleLanes().find(
      i => y >= this.yOf(i, 0) && y < this.yOf(i, this.model.layers.length));
    if (lane === undefined) return null;
    const number = Math.floor((y - this.yOf(lane, 0)) / BAR), layer = this.model.layers[number];
    const {spans} = layer.byLane[lane], time = this.timeAt(x), pixel = this.timeAt(x + 1) - time;
    for (let i = firstWhere(spans.length, at => layer.begin[spans[at]] > time + pixel / 2) - 1;
         i >= 0; --i) {
      if (layer.end[spans[i]] + pixel >= time) return {layer, number, span: spans[i]};
      if (layer.byLane[lane].ended[i] + pixel < time) break;
    }
    return null;
  }
}
