import { describe, expect, test } from "vitest";
import { flag } from "../engine/protocol";
import { colours, measures } from "../tokens/tokens";
import { randomRun, runOf } from "../testing/build";
import type { Run } from "../lab/run";
import { delayed } from "../lab/late";
import { timeText } from "../lab/words";
import { distance, fit, laneX, segment, timeAt, type Geometry } from "./geometry";
import { hit } from "./hit";
import { layOut, visible, type Layout } from "./layout";
import { cursorY, paint, type Scene } from "./paint";
import { paintSketch, sketch } from "./sketch";

const geometry = (run: Run, change: Partial<Geometry> = {}): Geometry => ({ width: 800, height: 500, scrollX: 0, scrollY: 0, zoom: 1, ...fit(run.labels.length, 800), ...change });

/** A canvas that writes down what is drawn. */
function recorder(): { c: CanvasRenderingContext2D; said: string[] } {
  const said: string[] = [];
  const state: Record<string, unknown> = { font: "11px x" };
  const round = (v: unknown) => (typeof v === "number" ? Math.round(v * 10) / 10 : Array.isArray(v) ? `[${v.join(" ")}]` : v);
  const c = new Proxy(state, {
    get(target, name: string) {
      if (name in target) return target[name];
      if (name === "measureText") return (text: string) => ({ width: text.length * 6 });
      return (...args: unknown[]) => void said.push(`${name}(${args.map(round).join(", ")})`);
    },
    set(target, name: string, value: unknown) {
      if (target[name] !== value) said.push(`${name} = ${String(round(value))}`);
      target[name] = value;
      return true;
    },
  });
  return { c: c as unknown as CanvasRenderingContext2D, said };
}

const scene = (run: Run, layout: Layout, cursor: number, change: Partial<Scene> = {}): Scene => ({
  run,
  layout,
  geometry: geometry(run),
  cursor,
  now: cursor > 0 ? (run.time[cursor - 1] ?? 0) : 0,
  colours: colours("light"),
  words: { flight: () => "REQ ts=1", beside: () => [], fence: () => "7", time: timeText(3_000_000) },
  order: () => 0,
  ...change,
});

const small = () =>
  runOf(
    [1, 2],
    [
      { time: 0, process: 0, kind: "acquire", flags: flag.waiting },
      { time: 1_000_000, process: 1, kind: "deliver", cause: 1, type: 1 },
      { time: 2_000_000, process: 0, kind: "deliver", cause: 2, type: 1, flags: flag.granted | flag.inside },
      { time: 3_000_000, process: 0, kind: "release" },
    ],
    [
      { sender: 1, to: 1, end: 2 },
      { sender: 2, to: 0, end: 3 },
    ],
  );

describe("the layout", () => {
  test.each(["real", "logical"] as const)("puts causes above what they lead to, %s", (axis) => {
    for (let seed = 1; seed <= 30; seed++) {
      const run = randomRun(seed, 80, 4);
      const layout = layOut(run, axis);
      for (let record = 1; record <= run.count; record++) {
        const cause = run.cause[record - 1] ?? 0;
        if (cause) expect(layout.y[record - 1]).toBeGreaterThan(layout.y[cause - 1] ?? 0);
      }
    }
  });

  test("shows later times below earlier ones, and marks long pauses", () => {
    const run = runOf([1], [0, 1, 2, 50].map((ms) => ({ time: ms * 1_000_000, kind: "fire" })));
    const layout = layOut(run, "real");
    expect(layout.moments.map((m) => m.broke)).toEqual([false, false, false, true]);
    expect([...layout.y]).toEqual([...layout.y].sort((a, b) => a - b));
  });

  test("finds all that is visible", () => {
    for (let seed = 1; seed <= 40; seed++) {
      const run = randomRun(seed, 200, 5);
      const layout = layOut(run, "real");
      const top = (seed * 37) % layout.height;
      const bottom = top + 300;
      const [from, to] = visible(layout.flightsAbove, layout.flightsBelow, top, bottom);
      for (let f = 0; f < run.flights; f++) {
        const touches = (layout.to[f] ?? 0) >= top && (layout.from[f] ?? 0) <= bottom;
        if (touches) expect(f >= from && f < to).toBe(true);
      }
    }
  });

  test("has a span for each wait and each critical section", () => {
    const layout = layOut(small(), "real");
    expect(layout.spans.map((s) => [s.kind, s.rank, s.from, s.to])).toEqual([
      ["waiting", 0, 1, 3],
      ["inside", 0, 3, 4],
    ]);
  });
});

describe("the geometry", () => {
  test("shares the width between the lanes, and never makes them too narrow", () => {
    expect(fit(3, 800).lane).toBeCloseTo((800 - 76) / 3);
    expect(fit(1000, 800).lane).toBe(18);
  });

  test("ends an arrow at its receiver, and a lost one on the way", () => {
    const run = runOf([1, 2], [{ time: 0 }, { time: 1_000_000, process: 1, kind: "drop" }], [{ sender: 1, to: 1, end: 2, fate: 2 }]);
    const g = geometry(run);
    const s = segment(run, layOut(run, "real"), g, 0);
    expect(s.x2).toBeCloseTo(laneX(g, 0) + (laneX(g, 1) - laneX(g, 0)) * 0.62);
    expect(distance({ x1: 0, y1: 0, x2: 10, y2: 0 }, 5, 3)).toBe(3);
    expect(distance({ x1: 0, y1: 0, x2: 10, y2: 0 }, 13, 4)).toBe(5);
  });
});

test("a place of the axis has a time, which a dragged arrow keeps in half steps of D", () => {
  const run = runOf([1, 2], [{ time: 0 }, { time: 1_000_000, process: 1 }, { time: 3_000_000 }], [{ sender: 1, to: 1, end: 2, fate: 1 }]);
  const layout = layOut(run, "real");
  const y = (record: number) => layout.y[record - 1] ?? 0;
  for (const record of [1, 2, 3]) expect(timeAt(layout, y(record), run.head.d)).toBe(run.time[record - 1]);
  expect(timeAt(layout, (y(2) + y(3)) / 2, run.head.d)).toBeCloseTo(2_000_000);
  expect(timeAt(layout, y(3) + measures.rowHeight, run.head.d)).toBe(3_000_000 + run.head.d);
  expect(run.head.d).toBe(1_000_000);
  expect([3_000_000, 2_300_000, 1_100_000, 0, -9].map((to) => delayed(run, 0, to))).toEqual([2_000_000, 1_500_000, 0, -500_000, -500_000]);
});

describe("the picture", () => {
  test("is always the same commands", () => {
    const run = small();
    const { c, said } = recorder();
    const shapes = paint(c, scene(run, layOut(run, "real"), 2));
    expect(said).toMatchSnapshot();
    expect(shapes.filter((shape) => "record" in shape)).toHaveLength(4);
    expect(shapes.filter((shape) => "flight" in shape && !shape.of)).toHaveLength(2);
  });

  test("has texts that stand for their arrows", () => {
    const run = small();
    const shapes = paint(recorder().c, scene(run, layOut(run, "real"), 2));
    const texts = shapes.filter((shape) => "flight" in shape && shape.of);
    expect(texts).toHaveLength(2);
    for (const text of texts) {
      if (!("flight" in text) || !text.of) continue;
      // On the side of the text that is away from the arrow, the arrow itself is out of reach.
      const [x, y] = [(text.x1 + text.x2) / 2, (text.y1 + text.y2) / 2];
      const length = Math.hypot(text.x2 - text.x1, text.y2 - text.y1);
      const [nx, ny] = [-(text.y2 - text.y1) / length, (text.x2 - text.x1) / length];
      const away = distance(text.of, x + nx, y + ny) > distance(text.of, x, y) ? 5 : -5;
      expect(distance(text.of, x + away * nx, y + away * ny)).toBeGreaterThan(8);
      expect(hit(shapes, x + away * nx, y + away * ny, false)).toBe(text.of);
    }
    expect(hit(shapes, 790, 10, false)).toBe(undefined);
  });

  test("shows what has not happened in a pale colour only", () => {
    const run = small();
    const { c, said } = recorder();
    paint(c, scene(run, layOut(run, "real"), 0));
    const fence = said.findIndex((line) => line.startsWith("fillText(7,"));
    expect(said.slice(0, fence).findLast((line) => line.startsWith("globalAlpha"))).toBe("globalAlpha = 0.4");
  });

  test("draws density and no arrows when it is small", () => {
    const run = randomRun(3, 400, 5);
    const { c, said } = recorder();
    const far = { geometry: geometry(run, { zoom: 0.05 }) };
    expect(paint(c, scene(run, layOut(run, "real"), 400, far))).toEqual([]);
    expect(said.some((line) => line.startsWith("arc("))).toBe(false);
    expect(said.filter((line) => line.startsWith("fillRect(")).length).toBeGreaterThan(20);
  });

  test("has the present below the record at the cursor", () => {
    const run = small();
    const layout = layOut(run, "real");
    const at = (cursor: number) => cursorY({ layout, geometry: geometry(run), cursor });
    expect(at(0)).toBeLessThan(layout.y[0] ?? 0);
    expect(at(3)).toBeGreaterThan(layout.y[2] ?? 0);
    expect(at(3)).toBeLessThan(layout.y[3] ?? 0);
  });
});

describe("the small picture of a run", () => {
  test("has its arrows, bars and dots from left to right", () => {
    const s = sketch(small());
    expect([s.lanes, s.records, s.dots.length, s.crosses.length]).toEqual([2, 4, 4, 0]);
    expect(s.bars.map((bar) => [bar.inside, bar.lane])).toEqual([[false, 0], [true, 0]]);
    const [[, lines] = ["", []]] = s.arrows;
    expect(lines.length / 4, "each message is one line").toBe(2);
    for (let i = 0; i < lines.length; i += 4) expect(lines[i + 2]).toBeGreaterThan(lines[i] ?? 1);
    const { c, said } = recorder();
    paintSketch(c, s, 200, 64, colours("light"));
    expect(said).toMatchSnapshot();
  });

  test("marks a crash, and a lost message where it ends on its way", () => {
    const run = runOf(
      [1, 2],
      [
        { time: 0, process: 0, kind: "acquire" },
        { time: 1_000_000, process: 1, kind: "drop", type: 1 },
        { time: 2_000_000, process: 1, kind: "crash" },
      ],
      [{ sender: 1, to: 1, end: 2, fate: 2 }],
    );
    const [lost, crash] = sketch(run).crosses;
    expect(lost?.[1]).toBeCloseTo(0.62);
    expect(crash?.[1]).toBe(1);
    expect(crash?.[0]).toBeGreaterThan(lost?.[0] ?? 1);
  });

  test("stays inside its frame", () => {
    for (let seed = 1; seed <= 30; seed++) {
      const s = sketch(randomRun(seed, 120, 5));
      expect(s.arrows.length).toBeGreaterThan(0);
      for (const [, lines] of s.arrows) {
        lines.forEach((at, i) => {
          expect(at).toBeGreaterThanOrEqual(0);
          expect(at).toBeLessThanOrEqual(i % 2 === 0 ? 1 : s.lanes - 1);
        });
      }
    }
  });
});
