import { describe, expect, test } from "vitest";
import { fate, flag } from "../engine/protocol";
import { chunk, headOf, kinds, random, randomRun, runOf } from "../testing/build";
import { future, past } from "./causality";
import { countersAt } from "./counters";
import { Run } from "./run";

describe("a run", () => {
  test("grows by chunks, and flights land in later ones", () => {
    const run = new Run(headOf([4, 7]), kinds);
    run.append(chunk({}, [{ time: 1, process: 0, kind: "acquire" }], [{ sender: 1, to: 1 }]));
    expect(run.flying(1)).toEqual([0]);
    run.append(chunk({ from: 2, flights: { from: 1, count: 0 } }, [{ time: 2, process: 1, kind: "deliver", cause: 1 }], [], [[0, 2]]));
    expect(run.count).toBe(2);
    expect(run.fateOf(0)).toBe(fate.arrived);
    expect(run.flying(1)).toEqual([0]);
    expect(run.flying(2)).toEqual([]);
    expect(run.kindOf(2)).toBe("deliver");
    expect(run.label(1)).toBe("7");
    expect(run.flight(1, 1)).toBe(0);
  });

  test("grows beyond what it has reserved", () => {
    const run = new Run(headOf([1]), kinds);
    const rows = Array.from({ length: 5000 }, (_, i) => ({ time: i }));
    run.append(chunk({}, rows.slice(0, 1500)));
    run.append(chunk({ from: 1501 }, rows.slice(1500)));
    expect(run.count).toBe(5000);
    expect([run.time[1499], run.time[1500], run.time[4999]]).toEqual([1499, 1500, 4999]);
  });

  test("shares the beginning of another", () => {
    const base = runOf([1, 2], [{ time: 1, kind: "acquire" }, { time: 2, process: 1, kind: "deliver" }, { time: 3 }], [{ sender: 1, to: 1, end: 2 }]);
    const run = new Run(headOf([1, 2]), kinds);
    run.append(chunk({ from: 2, same: 1, flights: { from: 1, count: 0 } }, [{ time: 9, process: 1, kind: "drop" }], [], [[0, 2]]), base);
    expect(run.count).toBe(2);
    expect([...run.time.subarray(0, 2)]).toEqual([1, 9]);
    expect(run.fateOf(0)).toBe(fate.lost);
    expect(base.fateOf(0)).toBe(fate.arrived);
  });

  test("refuses a body that is too short", () => {
    const frame = chunk({}, [{ time: 1 }]);
    const run = new Run(headOf([1]), kinds);
    expect(() => run.append({ ...frame, body: frame.body?.slice(0, 20) ?? null })).toThrow(RangeError);
  });

  test("knows which rules fired", () => {
    const run = runOf([1], [{ rules: 0b101 }, { rules: 0x80000000 }]);
    expect([0, 1, 2, 31].map((rule) => run.fired(1, rule))).toEqual([true, false, true, false]);
    expect(run.fired(2, 31)).toBe(true);
  });
});

describe("past and future", () => {
  /** Whether a record happened before another, along every chain there is. */
  function before(run: Run, a: number, b: number): boolean {
    if (a === b) return true;
    for (let next = a + 1; next <= b; next++) {
      const same = run.process[next - 1] === run.process[a - 1];
      if ((same || run.cause[next - 1] === a) && before(run, next, b)) return true;
    }
    return false;
  }

  test.each([1, 2, 3, 4, 5, 6])("are those of a naive search, seed %i", (seed) => {
    const run = randomRun(seed, 18, 3);
    for (let record = 1; record <= run.count; record++) {
      const all = Array.from({ length: run.count }, (_, i) => i + 1);
      expect([...past(run, record)].sort((a, b) => a - b)).toEqual(all.filter((r) => before(run, r, record)));
      expect([...future(run, record)].sort((a, b) => a - b)).toEqual(all.filter((r) => before(run, record, r)));
    }
  });
});

describe("counters", () => {
  test("count up to the cursor", () => {
    const run = runOf(
      [1, 2],
      [
        { process: 0, kind: "acquire", flags: flag.waiting },
        { process: 0, kind: "deliver", flags: flag.inside | flag.granted },
        { process: 1, kind: "acquire", flags: flag.waiting },
        { process: 0, kind: "release" },
      ],
      [{ sender: 1, to: 1 }, { sender: 1, to: 1, type: 2 }, { sender: 3, to: 0, fate: fate.copy }],
    );
    expect(countersAt(run, 0)).toEqual({ sent: 0, entries: 0, waiting: 0, inside: 0 });
    expect(countersAt(run, 3)).toEqual({ sent: 1, entries: 1, waiting: 1, inside: 1 });
    expect(countersAt(run, 4)).toEqual({ sent: 1, entries: 1, waiting: 1, inside: 0 });
  });

  test("agree with what is in flight at random places", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const run = randomRun(seed, 60, 4);
      const at = random(seed)(run.count + 1);
      const landed = Array.from({ length: run.flights }, (_, f) => f).filter((f) => (run.end[f] ?? 0) > 0 && (run.end[f] ?? 0) <= at).length;
      expect(run.flying(at).length).toBe(countersAt(run, at).sent - landed);
    }
  });
});
