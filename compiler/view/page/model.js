"use strict";
// The data. lanes: [rank, name, whether it is a thread block]. Each layer has, if it is predicted, its makespan (0:
// none) and how many of its tiles are shown; texts, invocations, links
// ([name, bytes, busy microseconds]), and, flat, spans (lane, begin, duration, and the numbers of name,
// text, source, invocation and instruction, -1 for none) and arrows (from, to, whether it is a signal).

const SPAN = 8, ARROW = 3;

/** The first i in [0, length) for which isThere(i); length if there is none. isThere must be monotone. */
function firstWhere(length, isThere) {
  let low = 0, high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isThere(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function prefixMaximum(length, value) {
  const result = new Float64Array(length);
  for (let i = 0, largest = -Infinity; i < length; ++i)
    result[i] = largest = Math.max(largest, value(i));
  return result;
}

/** One layer: its spans by lane and its arrows, both by time, of all invocations or of one. */
class Layer {
  constructor(data, numLanes) {
    Object.assign(this, {name: data.name, texts: data.texts, links: data.links,
                         makespan: data.makespan, tiles: data.tiles, tilesShown: data.tilesShown,
                         invocations: data.invocations, numLanes});
    this.count = data.spans.length / SPAN;
    const column = (Type, offset) =>
      Type.from({length: this.count}, (_, i) => data.spans[i * SPAN + offset]);
    this.lane = column(Uint32Array, 0);
    this.begin = column(Float64Array, 1);
    this.end = column(Float64Array, 2).map((duration, i) => this.begin[i] + duration);
    this.nameOf = column(Int32Array, 3);
    this.textOf = column(Int32Array, 4);
    this.sourceOf = column(Int32Array, 5);
    this.invocationOf = column(Int32Array, 6);
    this.instructionOf = column(Int32Array, 7);
    this.allArrows = Int32Array.from(data.arrows);
    this.select(-1);
  }

  /** Shows one invocation, or all for -1. */
  select(invocation) {
    this.invocation = invocation;
    const isShown = span => invocation < 0 || this.invocationOf[span] === invocation;
    const lanes = Array.from({length: this.numLanes}, () => []);
    for (let i = 0; i < this.count; ++i)
      if (isShown(i)) lanes[this.lane[i]].push(i);
    this.byLane = lanes.map(spans => {
      const sorted = Uint32Array.from(spans).sort((a, b) => this.begin[a] - this.begin[b] || a - b);
      return {spans: sorted, ended: prefixMaximum(sorted.length, i => this.end[sorted[i]])};
    });
    const arrows = [];
    for (let at = 0; at < this.allArrows.length; at += ARROW) {
      const [from, to, isSignal] = this.allArrows.subarray(at, at + ARROW);
      if (isShown(from) && isShown(to)) arrows.push({from, to, isSignal, start: this.startOf(from, to)});
    }
    this.arrows = arrows.sort((a, b) => a.start - b.start);
    this.arrowsEnd = prefixMaximum(arrows.length, i => this.begin[arrows[i].to]);
  }

  /** Where the sender has ended; where slices overlap, its begin. */
  startOf(from, to) {
    return this.end[from] <= this.begin[to] ? this.end[from] : this.begin[from];
  }

  shownSpans() {
    return this.byLane.flatMap(lane => Array.from(lane.spans));
  }

  /** Of what is shown: [first begin, last end]. */
  extent() {
    let from = Infinity, to = -Infinity;
    for (const {spans, ended} of this.byLane)
      if (spans.length > 0) {
        from = Math.min(from, this.begin[spans[0]]);
        to = Math.max(to, ended[spans.length - 1]);
      }
    return from < to ? [from, to] : [0, 1];
  }

  /** How long all of it takes, also what is not shown. */
  duration() {
    const [from, to] = this.extent();
    return this.makespan || to - from;
  }

  /** The arrows [low, high) hold all that touch the time from..to. */
  arrowsWithin(from, to) {
    return [firstWhere(this.arrows.length, i => this.arrowsEnd[i] >= from),
            firstWhere(this.arrows.length, i => this.arrows[i].start > to)];
  }

  /** The invocation whose duration is the median. */
  medianInvocation() {
    const ends = this.invocations.map(() => [Infinity, -Infinity]);
    for (let i = 0; i < this.count; ++i) {
      const end = ends[this.invocationOf[i]];
      if (!end) continue;
      end[0] = Math.min(end[0], this.begin[i]);
      end[1] = Math.max(end[1], this.end[i]);
    }
    const used = ends.map(([from, to], i) => [to - from, i]).filter(([time]) => time >= 0);
    used.sort((a, b) => a[0] - b[0]);
    return {median: used.length ? used[used.length >> 1][1] : -1, all: used.map(([, i]) => i).sort((a, b) => a - b)};
  }
}

class Model {
  constructor(data) {
    this.title = data.title;
    this.lanes = data.lanes.map(([rank, name, isBlock]) => ({rank, name, isBlock}));
    this.layers = data.layers.map(layer => new Layer(layer, this.lanes.length));
  }

  extent() {
    const ends = this.layers.map(layer => layer.extent());
    return [Math.min(...ends.map(end => end[0])), Math.max(...ends.map(end => end[1]))];
  }
}
