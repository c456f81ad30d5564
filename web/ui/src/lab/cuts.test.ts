import { describe, expect, test } from "vitest";
import { random, randomRun } from "../testing/build";
import { past } from "./causality";
import { crossings, cutAt, grown, nearest, onTheWay, recordsOf, shrunk, type Cut } from "./cuts";

const n = 3;
const within = (a: Cut, b: Cut): boolean => a.every((record, rank) => record <= (b[rank] ?? 0));

describe.each(Array.from({ length: 40 }, (_, seed) => seed + 1))("cuts of random runs, seed %i", (seed) => {
  const run = randomRun(seed, 24, n);
  const all = recordsOf(run);
  const draw = random(seed * 77);
  const any = (): Cut => all.map((records) => [0, ...records][draw(records.length + 1)] ?? 0);
  /** A cut is consistent if it has the whole past of each of its records. */
  const naive = (cut: Cut): boolean =>
    all.every((records, rank) => records.filter((r) => r <= (cut[rank] ?? 0)).every((r) => [...past(run, r)].every((p) => p <= (cut[run.process[p - 1] ?? 0] ?? 0))));

  test("agree with the pasts of their records", () => {
    for (let i = 0; i < 50; i++) {
      const cut = any();
      expect(crossings(run, all, cut).length === 0).toBe(naive(cut));
    }
  });

  test("all that has happened up to a record is consistent, and has on the way what flies", () => {
    for (let cursor = 0; cursor <= run.count; cursor++) {
      const cut = cutAt(all, cursor);
      expect(crossings(run, all, cut)).toEqual([]);
      expect(onTheWay(run, cut)).toEqual(run.flying(cursor));
    }
  });

  test("shrink and grow to consistent ones, and to no smaller or larger than they must", () => {
    const consistent: Cut[] = [];
    for (const a of [0, ...(all[0] ?? [])]) for (const b of [0, ...(all[1] ?? [])]) for (const c of [0, ...(all[2] ?? [])]) if (naive([a, b, c])) consistent.push([a, b, c]);
    for (let i = 0; i < 20; i++) {
      const cut = any();
      const [less, more] = [shrunk(run, all, cut), grown(run, all, cut)];
      expect(naive(less) && within(less, cut)).toBe(true);
      expect(naive(more) && within(cut, more)).toBe(true);
      expect(consistent.filter((c) => within(c, cut)).every((c) => within(c, less))).toBe(true);
      expect(consistent.filter((c) => within(cut, c)).every((c) => within(more, c))).toBe(true);
      expect([less, more]).toContainEqual(nearest(run, all, cut));
    }
  });
});
