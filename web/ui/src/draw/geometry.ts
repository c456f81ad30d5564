import { fate } from "../engine/protocol";
import type { Run } from "../lab/run";
import { measures } from "../tokens/tokens";
import type { Layout } from "./layout";

/** Geometry is how a layout lies on the screen, in pixels of CSS. */
export interface Geometry {
  width: number;
  height: number;
  scrollX: number;
  scrollY: number;
  zoom: number; // of the axis of time
  lane: number; // between two lines
  left: number; // of the first line
  bar: number; // width of a critical section
}

const axisRoom = 76;
const narrowAxisRoom = 52;
const laneLeast = 18;

/** fit chooses the distance of the lines so that they share the width. */
export function fit(lanes: number, width: number): Pick<Geometry, "lane" | "left" | "bar"> {
  const room = width < 600 ? narrowAxisRoom : axisRoom;
  const share = (width - room) / Math.max(lanes, 1);
  const lane = Math.max(laneLeast, Math.min(measures.laneMax, share));
  return { lane, left: room + Math.max(lane / 2, 14), bar: lane < 60 ? 10 : 22 };
}

/** contentWidth is how much room all lanes take. */
export const contentWidth = (g: Geometry, lanes: number): number => g.left + (lanes - 1) * g.lane + Math.max(g.lane / 2, 14);

export const laneX = (g: Geometry, rank: number): number => g.left + rank * g.lane - g.scrollX;

export const screenY = (g: Geometry, y: number): number => y * g.zoom - g.scrollY;

/** The detail that the zoom allows. */
export type Detail = "full" | "arrows" | "density";

export function detail(g: Geometry): Detail {
  const row = measures.rowHeight * g.zoom;
  if (row > 6) return "full";
  return row > 1.5 ? "arrows" : "density";
}

/** An arrow as it is drawn. One that was lost, or has not arrived, ends on the way. */
export interface Segment {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
}

export function segment(run: Run, layout: Layout, g: Geometry, flight: number): Segment {
  const end = run.end[flight] ?? 0;
  const receiver = run.receiver[flight] ?? 0;
  const sender = senderRank(run, flight);
  const x1 = laneX(g, sender);
  const x2 = laneX(g, receiver);
  const y1 = screenY(g, layout.from[flight] ?? 0);
  const y2 = screenY(g, layout.to[flight] ?? 0);
  const share = end === 0 ? 0.4 : run.fateOf(flight) === fate.lost ? 0.62 : 1;
  const drop = Math.max(y2, y1 + (share < 1 ? measures.leastGap * g.zoom : 0));
  const side = Math.sign(x2 - x1);
  const edge = share === 1 ? 4 : 0;
  return { x1: x1 + side * 3, y1, x2: x1 + (x2 - x1) * share - side * edge, y2: y1 + (drop - y1) * share };
}

/** senderRank is who sent a flight: its sender's record says, else the record at its end. */
export function senderRank(run: Run, flight: number): number {
  const sender = run.sender[flight] ?? 0;
  if (sender) return run.process[sender - 1] ?? 0;
  const end = run.end[flight] ?? 0;
  const peer = end ? run.peer[end - 1] : undefined;
  return peer === undefined || peer >= run.labels.length ? (run.receiver[flight] ?? 0) : peer;
}

/** timeAt returns the time at a place of the axis of real time. Behind the last moment a row is one D. */
export function timeAt(layout: Layout, y: number, d: number): number {
  const next = layout.moments.findIndex((moment) => moment.y >= y);
  const after = layout.moments[next];
  const before = layout.moments[(next < 0 ? layout.moments.length : next) - 1];
  if (!before) return after?.time ?? 0;
  if (!after) return before.time + ((y - before.y) / measures.rowHeight) * d;
  return before.time + ((y - before.y) / (after.y - before.y)) * (after.time - before.time);
}

/** distance from a point to a segment. */
export function distance(s: Segment, x: number, y: number): number {
  const dx = s.x2 - s.x1;
  const dy = s.y2 - s.y1;
  const length = dx * dx + dy * dy;
  const t = length === 0 ? 0 : Math.max(0, Math.min(1, ((x - s.x1) * dx + (y - s.y1) * dy) / length));
  return Math.hypot(x - s.x1 - t * dx, y - s.y1 - t * dy);
}
