import { fate } from "../engine/protocol";
import type { Run } from "../lab/run";
import { messageColour } from "../tokens/tokens";
import { layOut, shown } from "./layout";

/** Above so many records there is no room for a dot each. */
const mostDots = 60;

/** Sketch is a run as a small picture: time runs to the right, from 0 to 1. */
export interface Sketch {
  lanes: number;
  records: number;
  /** Of each colour of messages: start, lane of the sender, end, lane of the receiver, again and again. */
  arrows: [colour: string, lines: number[]][];
  /** Where messages were lost, and processes crashed. */
  crosses: [x: number, lane: number][];
  /** What a process did. */
  dots: [x: number, lane: number][];
  bars: { inside: boolean; lane: number; from: number; to: number }[];
}

/** sketch keeps of a run what a small picture shows. */
export function sketch(run: Run): Sketch {
  const layout = layOut(run, "real");
  const x = (y: number | undefined) => (y ?? 0) / layout.height;
  const arrows = new Map<number, number[]>();
  const crosses: Sketch["crosses"] = [];
  for (let f = 0; f < run.flights; f++) {
    const sender = run.sender[f] ?? 0;
    const end = run.end[f] ?? 0;
    if (!sender || !end) continue;
    const type = run.flightType[f] ?? 0;
    const lines = arrows.get(type) ?? [];
    arrows.set(type, lines);
    const [from, to] = [run.process[sender - 1] ?? 0, run.receiver[f] ?? 0];
    // A lost message ends on the way, as in the large picture.
    const share = run.fateOf(f) === fate.lost ? 0.62 : 1;
    const at: [number, number] = [x(layout.from[f]) + (x(layout.to[f]) - x(layout.from[f])) * share, from + (to - from) * share];
    lines.push(x(layout.from[f]), from, ...at);
    if (share < 1) crosses.push(at);
  }
  const dots: Sketch["dots"] = [];
  for (let record = 1; record <= run.count; record++) {
    const at: [number, number] = [x(layout.y[record - 1]), run.process[record - 1] ?? 0];
    if (run.kindOf(record) === "crash") crosses.push(at);
    else if (shown(run, record)) dots.push(at);
  }
  return {
    lanes: run.labels.length,
    records: run.count,
    arrows: [...arrows].map(([, lines], place) => [messageColour(place), lines]),
    crosses,
    dots: dots.length <= mostDots ? dots : [],
    bars: layout.spans.flatMap((s) => (s.kind === "inside" || s.kind === "waiting" ? [{ inside: s.kind === "inside", lane: s.rank, from: x(s.top), to: x(s.end) }] : [])),
  };
}

/** paintSketch draws a sketch into a rectangle. */
export function paintSketch(c: CanvasRenderingContext2D, s: Sketch, width: number, height: number, colours: Record<string, string>): void {
  const room = Math.min((height - 12) / Math.max(1, s.lanes - 1), 20);
  const first = (height - room * (s.lanes - 1)) / 2;
  const y = (lane: number) => first + lane * room;
  c.clearRect(0, 0, width, height);
  const stroke = (colour: string | undefined, lines: number[], thick: number) => {
    c.strokeStyle = colour ?? "#888888";
    c.lineWidth = thick;
    c.beginPath();
    for (let i = 0; i < lines.length; i += 4) {
      c.moveTo((lines[i] ?? 0) * width, y(lines[i + 1] ?? 0));
      c.lineTo((lines[i + 2] ?? 0) * width, y(lines[i + 3] ?? 0));
    }
    c.stroke();
  };
  stroke(colours.faint, Array.from({ length: s.lanes }, (_, lane) => [0, lane, 1, lane]).flat(), 1);
  const thick = Math.max(1.5, Math.min(6, room * 0.5));
  c.fillStyle = colours.inside ?? "#888888";
  for (const bar of s.bars) {
    c.globalAlpha = bar.inside ? 1 : 0.3;
    c.fillRect(bar.from * width, y(bar.lane) - thick / 2, Math.max(1, (bar.to - bar.from) * width), thick);
  }
  c.globalAlpha = 1;
  for (const [colour, lines] of s.arrows) stroke(colours[colour], lines, room < 6 ? 0.5 : 1);
  c.fillStyle = colours.ink ?? "#888888";
  for (const [at, lane] of s.dots) c.fillRect(at * width - 1, y(lane) - 1, 2, 2);
  const r = 3;
  const across = r / width;
  const up = r / Math.max(room, 1);
  stroke(
    colours.alarm,
    s.crosses.flatMap(([at, lane]) => [at - across, lane - up, at + across, lane + up, at - across, lane + up, at + across, lane - up]),
    1.5,
  );
}
