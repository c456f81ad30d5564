import { describe, expect, test } from "vitest";
import { flag } from "../engine/protocol";
import { random, randomRun, runOf, type RecordRow } from "../testing/build";
import { differs, nextDifference, nextTime, previousTime, recordsUntil } from "./times";

const rows = (times: [number, number][]): RecordRow[] => times.map(([time, flags]) => ({ time, flags, process: 0, kind: "acquire" }));
const a = runOf([1], rows([[1, flag.waiting], [1, flag.waiting], [3, flag.inside], [8, 0]]));
const b = runOf([1], rows([[1, flag.waiting], [4, flag.inside], [8, 0]]));

describe("two runs at a time", () => {
  test("records, the next time and the one before", () => {
    expect([0, 1, 2, 3, 99].map((t) => recordsUntil(a, t))).toEqual([0, 2, 2, 3, 4]);
    expect(nextTime([a, b], -1)).toBe(1);
    expect(nextTime([a, b], 1)).toBe(3);
    expect(nextTime([a, b], 3)).toBe(4);
    expect(nextTime([a, b], 8)).toBeUndefined();
    expect(previousTime([a, b], 8)).toBe(4);
    expect(previousTime([a, b], 4)).toBe(3);
    expect(previousTime([a, b], 1)).toBe(-1);
  });

  test("a difference begins where the clients were alike before", () => {
    expect([1, 3, 4].map((t) => differs(a, b, t))).toEqual([false, true, false]);
    expect(nextDifference(a, b, -1)).toBe(3);
    expect(nextDifference(a, b, 3)).toBeUndefined();
  });

  test.each(Array.from({ length: 30 }, (_, seed) => seed + 1))("as a search of all records finds, seed %i", (seed) => {
    const run = randomRun(seed, 60, 3);
    const times = Array.from(run.time.slice(0, run.count));
    const draw = random(seed + 1000);
    for (let i = 0; i < 20; i++) {
      const t = (times[draw(times.length)] ?? 0) + (draw(3) - 1) / 2;
      expect(recordsUntil(run, t)).toBe(times.filter((x) => x <= t).length);
      expect(nextTime([run], t)).toBe(times.find((x) => x > t));
      expect(previousTime([run], t)).toBe(times.filter((x) => x < t).at(-1) ?? -1);
    }
  });
});
