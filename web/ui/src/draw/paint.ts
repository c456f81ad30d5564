import { flag } from "../engine/protocol";
import type { Run } from "../lab/run";
import { messageColour, messageDash } from "../tokens/tokens";
import { contentWidth, detail, laneX, screenY, segment, type Geometry, type Segment } from "./geometry";
import { density } from "./density";
import { Labels } from "./labels";
import { shown, visible, type Layout, type Span } from "./layout";

/** Words gives the texts of what is visible, once they are known. */
export interface Words {
  flight(flight: number): string;
  /** What stands beside the line of a process. */
  beside(record: number): string[];
  fence(record: number): string;
  time(nanoseconds: number): string;
}

/** Scene is all that a picture depends on. */
export interface Scene {
  run: Run;
  layout: Layout;
  geometry: Geometry;
  /** How many records have happened. What comes later is pale. */
  cursor: number;
  /** Virtual time between two records, while the run plays; else that of the cursor. */
  now: number;
  colours: Record<string, string>;
  words: Words;
  /** Which place a type of message has among those of the run, for its colour. */
  order: (type: number) => number;
  /** Records to keep bright; all others are dimmed. Undefined: all. */
  lit?: ReadonlySet<number> | undefined;
}

/** Shape is something that can be pointed at. */
export type Shape = { record: number; x: number; y: number } | Arrow;

/** Arrow is an arrow, or the text of one: then it has the arrow itself. */
export type Arrow = { flight: number; of?: Arrow } & Segment;

const pale = 0.26;
const font = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/** paint draws a scene and returns what can be pointed at. */
export function paint(c: CanvasRenderingContext2D, scene: Scene): Shape[] {
  const { geometry: g, colours } = scene;
  c.globalAlpha = 1;
  c.fillStyle = colour(colours, "paper");
  c.fillRect(0, 0, g.width, g.height);
  c.font = font;
  const top = g.scrollY / g.zoom - 40;
  const bottom = (g.scrollY + g.height) / g.zoom + 40;
  axis(c, scene, top, bottom);
  lines(c, scene, top, bottom);
  if (detail(g) === "density") {
    density(c, scene, top, bottom);
    bars(c, scene, top, bottom);
    return [];
  }
  bars(c, scene, top, bottom);
  const arrows = flights(c, scene, top, bottom);
  const dots = records(c, scene, top, bottom);
  return [...dots, ...arrows, ...(detail(g) === "full" ? label(c, scene, arrows, dots) : [])];
}

const colour = (colours: Record<string, string>, name: string): string => colours[name] ?? "#888888";

/** cursorY is where the present is: below the record at the cursor. */
export function cursorY(scene: Pick<Scene, "layout" | "geometry" | "cursor">): number {
  const { layout, geometry: g, cursor } = scene;
  const y = cursor > 0 ? (layout.y[cursor - 1] ?? 0) : 0;
  return cursor > 0 ? screenY(g, y) + 8 : screenY(g, 12);
}

/** axisRight is where the times end, before the picture is scrolled. */
const axisRight = (g: Scene["geometry"]): number => g.left - Math.max(g.lane / 2, 14);

function axis(c: CanvasRenderingContext2D, scene: Scene, top: number, bottom: number): void {
  const { layout, geometry: g, colours, words } = scene;
  c.textAlign = "right";
  c.textBaseline = "middle";
  const right = axisRight(g);
  let last = -Infinity;
  for (const m of layout.moments) {
    if (m.y < top || m.y > bottom) continue;
    const y = screenY(g, m.y);
    if (y - last < 18) continue;
    last = y;
    c.strokeStyle = colour(colours, "faint");
    c.lineWidth = 1;
    c.setLineDash([1, 4]);
    stroke(c, right - 4 - g.scrollX, y, Math.min(g.width, contentWidth(g, scene.run.labels.length) - g.scrollX), y);
    c.fillStyle = colour(colours, "muted");
    c.fillText(words.time(m.time), right - 10 - g.scrollX, y);
    if (m.broke) zigzag(c, right - 8 - g.scrollX, y - 12, colour(colours, "muted"));
  }
  c.setLineDash([]);
}

/** zigzag marks a stretch of time that is not to scale. */
function zigzag(c: CanvasRenderingContext2D, x: number, y: number, paint: string): void {
  c.setLineDash([]);
  c.strokeStyle = paint;
  c.beginPath();
  c.moveTo(x - 10, y + 4);
  c.lineTo(x - 4, y + 1);
  c.lineTo(x - 10, y - 3);
  c.lineTo(x - 4, y - 6);
  c.stroke();
}

function stroke(c: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  c.beginPath();
  c.moveTo(x1, y1);
  c.lineTo(x2, y2);
  c.stroke();
}

function lines(c: CanvasRenderingContext2D, scene: Scene, top: number, bottom: number): void {
  const { run, layout, geometry: g, colours } = scene;
  const present = Math.max(0, Math.min(g.height, cursorY(scene)));
  const end = Math.min(g.height, screenY(g, layout.height - 14));
  const start = Math.max(0, screenY(g, 0));
  c.strokeStyle = colour(colours, "ink");
  c.lineWidth = 1.2;
  for (const [from, to, alpha] of [
    [start, Math.min(present, end), 0.75],
    [Math.max(present, start), end, 0.2],
  ] as const) {
    if (to <= from) continue;
    c.globalAlpha = alpha;
    c.beginPath();
    for (let rank = 0; rank < run.labels.length; rank++) {
      const x = laneX(g, rank);
      if (x < -2 || x > g.width + 2) continue;
      c.moveTo(x, from);
      c.lineTo(x, to);
    }
    c.stroke();
  }
  c.globalAlpha = 1;
  for (const span of layout.spans) {
    if (span.kind === "down" || span.kind === "paused") hostSpan(c, scene, span, top, bottom);
  }
}

function hostSpan(c: CanvasRenderingContext2D, scene: Scene, span: Span, top: number, bottom: number): void {
  if (span.end < top || span.top > bottom) return;
  const { geometry: g, colours, cursor } = scene;
  const x = laneX(g, span.rank);
  c.globalAlpha = span.from <= cursor ? 1 : pale;
  c.strokeStyle = colour(colours, "paper");
  c.lineWidth = 4;
  stroke(c, x, screenY(g, span.top), x, screenY(g, span.end));
  c.strokeStyle = colour(colours, span.kind === "down" ? "alarm" : "muted");
  c.lineWidth = span.kind === "down" ? 1.5 : 3;
  c.setLineDash(span.kind === "down" ? [2, 4] : [6, 4]);
  stroke(c, x, screenY(g, span.top), x, screenY(g, span.end));
  c.setLineDash([]);
  c.globalAlpha = 1;
}

/** bars draws where clients wait and are inside. What is still to come is pale. */
function bars(c: CanvasRenderingContext2D, scene: Scene, top: number, bottom: number): void {
  const { layout, geometry: g, colours, cursor } = scene;
  c.fillStyle = colour(colours, "inside");
  const present = cursorY(scene);
  for (const span of layout.spans) {
    if (span.kind === "down" || span.kind === "paused" || span.end < top || span.top > bottom) continue;
    const strength = span.kind === "waiting" ? 0.38 : 1;
    const width = span.kind === "waiting" ? 6 : g.bar;
    const x = laneX(g, span.rank) - width / 2;
    const y1 = screenY(g, span.top);
    const y2 = screenY(g, span.end);
    const over = span.to > 0 && span.to <= cursor;
    const split = span.from > cursor ? y1 : over ? y2 : Math.max(y1, Math.min(y2, present));
    for (const [from, to, alpha] of [
      [y1, split, strength],
      [split, y2, strength * pale],
    ] as const) {
      if (to - from < 0.5) continue;
      c.globalAlpha = alpha;
      c.beginPath();
      c.roundRect(x, from, width, to - from, Math.min(3, (to - from) / 2));
      c.fill();
    }
  }
  c.globalAlpha = 1;
}

/** Batch is the arrows that share a colour, a dash and an alpha: one path. */
interface Batch {
  type: number;
  lines: Segment[];
  heads: Segment[];
}

function flights(c: CanvasRenderingContext2D, scene: Scene, top: number, bottom: number): Arrow[] {
  const { run, layout, geometry: g, cursor } = scene;
  const [from, to] = visible(layout.flightsAbove, layout.flightsBelow, top, bottom);
  const bright = new Map<number, Batch>();
  const dim = new Map<number, Batch>();
  const crosses: [Segment, boolean][] = [];
  const balls: [number, Segment][] = [];
  const drawn: Arrow[] = [];
  for (let f = from; f < to; f++) {
    if ((layout.to[f] ?? 0) < top || (layout.from[f] ?? 0) > bottom) continue;
    const s = segment(run, layout, g, f);
    const type = run.flightType[f] ?? 0;
    const sender = run.sender[f] ?? 0;
    const end = run.end[f] ?? 0;
    const lit = !scene.lit || (scene.lit.has(end) && scene.lit.has(sender));
    drawn.push({ flight: f, ...s });
    const lost = end > 0 && run.fateOf(f) === 2;
    if (sender > cursor || !lit) {
      add(dim, type, s, !lost && end > 0);
      if (lost) crosses.push([s, false]);
    } else if (end > 0 && end <= cursor) {
      add(bright, type, s, !lost);
      if (lost) crosses.push([s, true]);
    } else {
      const at = progress(scene, f);
      const x = s.x1 + (s.x2 - s.x1) * at;
      const y = s.y1 + (s.y2 - s.y1) * at;
      add(bright, type, { ...s, x2: x, y2: y }, false);
      add(dim, type, { x1: x, y1: y, x2: s.x2, y2: s.y2 }, !lost && end > 0);
      if (lost) crosses.push([s, false]);
      balls.push([type, { ...s, x2: x, y2: y }]);
    }
  }
  strokeBatches(c, scene, dim, pale);
  strokeBatches(c, scene, bright, 1);
  for (const [s, happened] of crosses) cross(c, s.x2, s.y2, 5, colour(scene.colours, "alarm"), happened ? 1 : pale);
  for (const [type, s] of balls) ball(c, scene, type, s);
  return drawn;
}

function add(batches: Map<number, Batch>, type: number, s: Segment, head: boolean): void {
  let batch = batches.get(type);
  if (!batch) batches.set(type, (batch = { type, lines: [], heads: [] }));
  batch.lines.push(s);
  if (head) batch.heads.push(s);
}

/** progress is how much of its way a message has made, between 0 and 1. */
export function progress(scene: Pick<Scene, "run" | "now" | "cursor">, flight: number): number {
  const { run, now } = scene;
  const sender = run.sender[flight] ?? 0;
  const end = run.end[flight] ?? 0;
  if (end === 0) return 0.6;
  const left = sender ? (run.time[sender - 1] ?? 0) : 0;
  const arrives = run.time[end - 1] ?? 0;
  const share = arrives > left ? (now - left) / (arrives - left) : 0.5;
  return Math.max(0.12, Math.min(0.88, share));
}

function strokeBatches(c: CanvasRenderingContext2D, scene: Scene, batches: Map<number, Batch>, alpha: number): void {
  const withHeads = detail(scene.geometry) === "full";
  c.globalAlpha = alpha;
  for (const { type, lines: segments, heads } of batches.values()) {
    const place = scene.order(type);
    const side = scene.run.head.messages[type - 1]?.class !== "protocol";
    c.strokeStyle = c.fillStyle = colour(scene.colours, messageColour(place));
    c.lineWidth = side ? 1 : 1.4;
    c.setLineDash([...messageDash(place)]);
    c.beginPath();
    for (const s of segments) {
      c.moveTo(s.x1, s.y1);
      c.lineTo(s.x2, s.y2);
    }
    c.stroke();
    if (!withHeads) continue;
    c.setLineDash([]);
    c.beginPath();
    for (const s of heads) head(c, s);
    c.fill();
  }
  c.setLineDash([]);
  c.globalAlpha = 1;
}

/** head adds the tip of an arrow to the path: 8 long, 7 wide. */
function head(c: CanvasRenderingContext2D, s: Segment): void {
  const length = Math.hypot(s.x2 - s.x1, s.y2 - s.y1) || 1;
  const cos = (s.x2 - s.x1) / length;
  const sin = (s.y2 - s.y1) / length;
  c.moveTo(s.x2, s.y2);
  c.lineTo(s.x2 - 8 * cos - 3.5 * sin, s.y2 - 8 * sin + 3.5 * cos);
  c.lineTo(s.x2 - 8 * cos + 3.5 * sin, s.y2 - 8 * sin - 3.5 * cos);
  c.closePath();
}

/** ball is a message on its way. */
function ball(c: CanvasRenderingContext2D, scene: Scene, type: number, s: Segment): void {
  c.fillStyle = colour(scene.colours, messageColour(scene.order(type)));
  c.strokeStyle = colour(scene.colours, "paper");
  c.lineWidth = 2;
  c.beginPath();
  c.arc(s.x2, s.y2, 5.5, 0, 2 * Math.PI);
  c.fill();
  c.stroke();
}

function cross(c: CanvasRenderingContext2D, x: number, y: number, r: number, paint: string, alpha: number): void {
  c.globalAlpha = alpha;
  c.strokeStyle = paint;
  c.lineWidth = 2;
  c.beginPath();
  c.moveTo(x - r, y - r);
  c.lineTo(x + r, y + r);
  c.moveTo(x - r, y + r);
  c.lineTo(x + r, y - r);
  c.stroke();
  c.globalAlpha = 1;
}

function records(c: CanvasRenderingContext2D, scene: Scene, top: number, bottom: number): { record: number; x: number; y: number }[] {
  const { run, layout, geometry: g, cursor } = scene;
  const [from, to] = visible(layout.above, layout.below, top, bottom);
  const drawn: { record: number; x: number; y: number }[] = [];
  for (let i = from; i < to; i++) {
    const record = i + 1;
    if (!shown(run, record)) continue;
    const x = laneX(g, run.process[i] ?? 0);
    const y = screenY(g, layout.y[i] ?? 0);
    if (y < -20 || y > g.height + 20) continue;
    const lit = !scene.lit || scene.lit.has(record);
    c.globalAlpha = record <= cursor && lit ? 1 : pale;
    mark(c, scene, record, x, y);
    drawn.push({ record, x, y });
  }
  c.globalAlpha = 1;
  return drawn;
}

function mark(c: CanvasRenderingContext2D, scene: Scene, record: number, x: number, y: number): void {
  const { run, colours, geometry: g } = scene;
  const alpha = c.globalAlpha;
  switch (run.kindOf(record)) {
    case "partition":
    case "heal":
      c.strokeStyle = colour(colours, "alarm");
      c.lineWidth = 1.5;
      c.setLineDash([8, 4]);
      stroke(c, laneX(g, 0) - 14, y, laneX(g, run.labels.length - 1) + 14, y);
      c.setLineDash([]);
      return;
    case "crash":
      cross(c, x, y, 6, colour(colours, "alarm"), alpha);
      c.globalAlpha = alpha;
      return;
    case "pause":
      c.fillStyle = colour(colours, "alarm");
      c.fillRect(x - 4, y - 5, 3, 10);
      c.fillRect(x + 1, y - 5, 3, 10);
      return;
    case "restart":
    case "resume":
      c.fillStyle = colour(colours, "inside");
      c.beginPath();
      c.moveTo(x - 4, y - 6);
      c.lineTo(x + 6, y);
      c.lineTo(x - 4, y + 6);
      c.fill();
      return;
    case "fire":
      c.fillStyle = colour(colours, "paper");
      c.strokeStyle = colour(colours, "muted");
      c.lineWidth = 1.2;
      c.beginPath();
      c.moveTo(x, y - 4.5);
      c.lineTo(x + 4.5, y);
      c.lineTo(x, y + 4.5);
      c.lineTo(x - 4.5, y);
      c.closePath();
      c.fill();
      c.stroke();
      return;
  }
  // A paper ring keeps the dot apart from the bar and from what passes.
  c.fillStyle = colour(colours, "ink");
  c.strokeStyle = colour(colours, "paper");
  c.lineWidth = 1.5;
  c.beginPath();
  c.arc(x, y, 3.5, 0, 2 * Math.PI);
  c.stroke();
  c.fill();
}

/** label writes fences, what happens beside the lines and the names of messages. It returns where the names stand. */
function label(
  c: CanvasRenderingContext2D,
  scene: Scene,
  arrows: Arrow[],
  dots: { record: number; x: number; y: number }[],
): Arrow[] {
  const named: Arrow[] = [];
  const { run, geometry: g, colours, words, cursor } = scene;
  const labels = new Labels(c, colour(colours, "paper"), g);
  labels.avoid(0, 0, axisRight(g) - 8 - g.scrollX, g.height); // the times
  for (const dot of dots) labels.avoid(dot.x - 5, dot.y - 5, 10, 10);
  for (let rank = 0; rank < run.labels.length; rank++) labels.avoid(laneX(g, rank) - 1, 0, 2, g.height);
  for (const [i, arrow] of arrows.entries()) labels.line(arrow, i + 1);
  // What is not yet there may stand only where nothing stands that is.
  const present = (record: number) => record <= cursor && (!scene.lit || scene.lit.has(record));
  for (const now of [true, false]) {
    const alpha = now ? 1 : 0.4;
    for (const { record, x, y } of dots) {
      if (present(record) !== now) continue;
      const fence = run.has(record, flag.granted) ? words.fence(record) : "";
      if (fence) labels.boxed(fence, x, y + 13, colour(colours, "inside"), alpha, g.bar);
      const bad = run.kindOf(record) === "crash";
      const edge = run.has(record, flag.inside) ? g.bar / 2 + 4 : 8;
      for (const text of words.beside(record)) {
        labels.beside(text, x, y, edge, colour(colours, bad ? "alarm" : "ink"), alpha, g.lane - 16);
      }
    }
    for (const [i, arrow] of arrows.entries()) {
      const f = arrow.flight;
      if (present(run.sender[f] ?? 0) !== now) continue;
      const type = run.flightType[f] ?? 0;
      if (run.head.messages[type - 1]?.class === "heartbeat") continue;
      const line = labels.along(words.flight(f), arrow, i + 1, colour(colours, messageColour(scene.order(type))), alpha);
      if (line) named.push({ flight: f, of: arrow, ...line });
    }
  }
  return named;
}
