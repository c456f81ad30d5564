import { fate, flag } from "../engine/protocol";
import type { Run } from "../lab/run";
import { measures } from "../tokens/tokens";

/** Where time stands: proportional with long gaps shortened, or one row per step. */
export type Axis = "real" | "logical";

/** Room above the first record, for the heads of the lanes. */
export const topRoom = 28;
const bottomRoom = 48;
const { rowHeight, leastGap, flightGap, mostGap } = measures;

/** A moment is one time at which something happened, with its rows. */
export interface Moment {
  time: number;
  y: number;
  rows: number;
  /** The time before it is not to scale. */
  broke: boolean;
}

export type SpanKind = "waiting" | "inside" | "down" | "paused";

/** A span is a stretch of the line of a process. */
export interface Span {
  kind: SpanKind;
  rank: number;
  from: number; // record
  to: number; // record, or 0 if it is still so at the end
  top: number;
  end: number;
}

/**
 * Layout is where records and flights stand along the axis of time, in pixels at zoom
 * 1. It has the geometry of the pictures of package trace.
 */
export interface Layout {
  y: Float64Array; // of each record
  from: Float64Array; // of each flight
  to: Float64Array;
  spans: Span[];
  moments: Moment[];
  height: number;
  /** Bounds for the search of what is visible: see visible. */
  above: Float64Array;
  below: Float64Array;
  flightsAbove: Float64Array;
  flightsBelow: Float64Array;
}

export function layOut(run: Run, axis: Axis): Layout {
  const { y, moments, height } = axis === "real" ? realRows(run) : logicalRows(run);
  const from = new Float64Array(run.flights);
  const to = new Float64Array(run.flights);
  for (let f = 0; f < run.flights; f++) {
    const sender = run.sender[f] ?? 0;
    const end = run.end[f] ?? 0;
    const toY = end ? (y[end - 1] ?? 0) : NaN;
    const fromY = sender ? (y[sender - 1] ?? 0) : toY - leastGap;
    from[f] = Number.isNaN(fromY) ? topRoom : fromY;
    to[f] = Number.isNaN(toY) ? (from[f] ?? 0) + flightGap : toY;
  }
  return {
    y,
    from,
    to,
    moments,
    height,
    spans: spansOf(run, y, height),
    above: runningMax(y),
    below: runningMin(y),
    flightsAbove: runningMax(to),
    flightsBelow: runningMin(from),
  };
}

/** realRows gives each record a row of its moment, below what caused it at the same time. */
function realRows(run: Run): { y: Float64Array; moments: Moment[]; height: number } {
  const moments: Moment[] = [];
  const momentOf = new Int32Array(run.count);
  const rows = new Int32Array(run.count);
  let next = new Int32Array(run.labels.length);
  let widest = 0;
  for (let i = 0; i < run.count; i++) {
    const time = run.time[i] ?? 0;
    const last = moments.at(-1);
    if (!last || time > last.time) {
      moments.push({ time, y: 0, rows: 1, broke: false });
      next = next.fill(0);
      widest = 0;
    }
    const m = moments.length - 1;
    momentOf[i] = m;
    const rank = run.process[i] ?? 0;
    const whole = isNetworkWide(run, i + 1);
    if (whole) next.fill(widest);
    const cause = (run.cause[i] ?? 0) - 1;
    if (cause >= 0 && momentOf[cause] === m && shown(run, cause + 1)) {
      next[rank] = Math.max(next[rank] ?? 0, (rows[cause] ?? 0) + 1);
    }
    rows[i] = next[rank] ?? 0;
    if (whole) next.fill(widest + 1);
    else if (shown(run, i + 1)) next[rank] = (next[rank] ?? 0) + 1;
    widest = Math.max(widest, next[rank] ?? 0);
    const moment = moments[m] as Moment;
    moment.rows = Math.max(moment.rows, widest, 1);
  }
  const bottom = scale(moments, usualFlight(run, moments));
  const y = new Float64Array(run.count);
  for (let i = 0; i < run.count; i++) y[i] = (moments[momentOf[i] ?? 0]?.y ?? 0) + (rows[i] ?? 0) * rowHeight;
  return { y, moments, height: bottom + bottomRoom };
}

function logicalRows(run: Run): { y: Float64Array; moments: Moment[]; height: number } {
  const y = new Float64Array(run.count);
  let most = 0;
  for (let i = 0; i < run.count; i++) {
    const row = run.row[i] ?? 0;
    most = Math.max(most, row);
    y[i] = topRoom + row * (rowHeight + 6);
  }
  return { y, moments: [], height: topRoom + most * (rowHeight + 6) + bottomRoom };
}

/** Partitions concern all lanes. */
function isNetworkWide(run: Run, record: number): boolean {
  const kind = run.kindOf(record);
  return kind === "partition" || kind === "heal";
}

/** shown reports whether a record has a row of its own. */
export const shown = (run: Run, record: number): boolean => !run.has(record, flag.hidden);

/** usualFlight is the median of how long messages take, else of the pauses. */
function usualFlight(run: Run, moments: Moment[]): number {
  let lengths: number[] = [];
  for (let f = 0; f < run.flights; f++) {
    const sender = run.sender[f] ?? 0;
    const end = run.end[f] ?? 0;
    if (sender && end && run.fateOf(f) === fate.arrived) {
      const length = (run.time[end - 1] ?? 0) - (run.time[sender - 1] ?? 0);
      if (length > 0) lengths.push(length);
    }
  }
  if (lengths.length === 0) lengths = moments.slice(1).map((m, i) => m.time - (moments[i]?.time ?? 0));
  if (lengths.length === 0) return 1;
  const sorted = Float64Array.from(lengths).sort();
  return sorted[sorted.length >> 1] ?? 1;
}

function scale(moments: Moment[], flight: number): number {
  let y = topRoom;
  let before: Moment | undefined;
  for (const m of moments) {
    if (before) {
      const length = m.time - before.time;
      m.broke = length > 2 * flight;
      const gap = m.broke ? mostGap : Math.min(Math.floor((length * flightGap) / flight), mostGap);
      y += Math.max(leastGap, gap - (before.rows - 1) * rowHeight);
    }
    m.y = y;
    y += (m.rows - 1) * rowHeight;
    before = m;
  }
  return y;
}

interface Line {
  client: Span | undefined;
  host: Span | undefined;
}

/** spansOf finds where processes wait, are inside, down or paused. */
function spansOf(run: Run, y: Float64Array, height: number): Span[] {
  const spans: Span[] = [];
  const lines: Line[] = run.labels.map(() => ({ client: undefined, host: undefined }));
  for (let record = 1; record <= run.count; record++) {
    if (run.has(record, flag.network)) continue;
    const rank = run.process[record - 1] ?? 0;
    const line = lines[rank];
    if (!line) continue;
    const top = y[record - 1] ?? 0;
    const client = run.has(record, flag.inside) ? "inside" : run.has(record, flag.waiting) ? "waiting" : undefined;
    const host = run.has(record, flag.down) ? "down" : run.has(record, flag.paused) ? "paused" : undefined;
    const renewed = run.has(record, flag.granted) && client === "inside";
    line.client = next(spans, line.client, client, rank, record, top, renewed);
    line.host = next(spans, line.host, host, rank, record, top, false);
  }
  for (const line of lines) {
    for (const span of [line.client, line.host]) {
      if (span) span.end = Math.max(height - bottomRoom / 2, span.top);
    }
  }
  return spans.sort((a, b) => a.top - b.top);
}

function next(
  spans: Span[],
  span: Span | undefined,
  kind: SpanKind | undefined,
  rank: number,
  record: number,
  y: number,
  renewed: boolean,
): Span | undefined {
  if (span?.kind === kind && !renewed) return span;
  if (span) {
    span.to = record;
    span.end = span.kind === "inside" ? Math.max(y, span.top + rowHeight) : y;
  }
  if (!kind) return undefined;
  const begun: Span = { kind, rank, from: record, to: 0, top: y, end: y };
  spans.push(begun);
  return begun;
}

function runningMax(values: Float64Array): Float64Array {
  const result = new Float64Array(values.length);
  let most = -Infinity;
  for (let i = 0; i < values.length; i++) result[i] = most = Math.max(most, values[i] ?? 0);
  return result;
}

function runningMin(values: Float64Array): Float64Array {
  const result = new Float64Array(values.length);
  let least = Infinity;
  for (let i = values.length - 1; i >= 0; i--) result[i] = least = Math.min(least, values[i] ?? 0);
  return result;
}

/** firstAtLeast returns the first place of a rising array with a value of at least x. */
function firstAtLeast(rising: Float64Array, x: number): number {
  let low = 0;
  let high = rising.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rising[middle] ?? 0) < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** visible returns the places [from, to) outside of which nothing lies between top and bottom. */
export function visible(above: Float64Array, below: Float64Array, top: number, bottom: number): [number, number] {
  return [firstAtLeast(above, top), firstAtLeast(below, bottom + 1e-6)];
}
