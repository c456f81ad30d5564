import { expect, test } from "vitest";
import type { Changes, Resource } from "./forms";
import { Names, orders } from "./names";

const held = (name: string, fence: number, queue = 0, since = fence): Resource => ({
  name,
  limit: 1,
  queue_length: queue,
  waiters: [],
  holders: [{ session_id: "s-1", hold: "1", fence: String(fence), since: new Date(since).toISOString(), host: "h", pid: 1, program: "p" }],
});

const changes = (resources: Resource[], more: Partial<Changes> = {}): Changes => ({ resources, gone: [], ...more });

/** A generator of numbers below n, the same each time. */
function draws(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

// The model is the simplest there is: the last that was told of each name, forgotten at
// each reset. They agree whenever all has been told.
test("the reducer agrees with a model over random changes and resets", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const draw = draws(seed);
    const names = new Names();
    let model = new Map<string, Resource>();
    for (let step = 0; step < 60; step++) {
      if (step === 0 || draw(8) === 0) {
        model = new Map();
        const pages = 1 + draw(3);
        for (let page = 0; page < pages; page++) {
          const some = Array.from({ length: draw(4) }, () => held(`n${page}${draw(9)}`, step, draw(5)));
          some.forEach((r) => model.set(r.name, r));
          names.apply(changes(some, { reset: page === 0, more: page < pages - 1 }), step);
        }
      } else {
        const some = Array.from({ length: draw(3) }, () => held(`n${draw(3)}${draw(9)}`, step, draw(5)));
        const gone = [...model.keys()].filter(() => draw(6) === 0).filter((name) => !some.some((r) => r.name === name));
        some.forEach((r) => model.set(r.name, r));
        gone.forEach((name) => model.delete(name));
        names.apply(changes(some, { gone }), step);
      }
      expect(new Map([...names.rows].map(([name, row]) => [name, row.resource])), `seed ${seed}, step ${step}`).toEqual(model);
      for (const order of orders) {
        const key = (r: Resource) => (order === "queue" ? -r.queue_length : order === "age" ? Date.parse(r.holders[0]?.since ?? "") : 0);
        const wanted = [...model.values()].sort((a, b) => key(a) - key(b) || (a.name < b.name ? -1 : 1)).map((r) => r.name);
        expect(names.sorted(order).map((row) => row.resource.name)).toEqual(wanted);
      }
    }
  }
});

test("after a reset the rows before it stay until all is told", () => {
  const names = new Names();
  names.apply(changes([held("a", 1), held("b", 2)], { reset: true }), 1);
  names.apply(changes([held("b", 2)], { reset: true, more: true }), 2);
  expect([...names.rows.keys()]).toEqual(["a", "b"]);
  names.apply(changes([held("c", 3)]), 3);
  expect([...names.rows.keys()]).toEqual(["b", "c"]);
});

test("only what is news counts as changed", () => {
  const names = new Names();
  names.apply(changes([held("a", 1), held("b", 2)], { reset: true }), 10);
  expect(names.complete).toBe(true);
  names.apply(changes([held("a", 1, 1), held("b", 2), held("c", 3)]), 20);
  expect([...names.rows.values()].map((row) => row.changed)).toEqual([20, 0, 20]);
  names.apply(changes([held("a", 1, 1), held("b", 2), held("c", 4)], { reset: true }), 30);
  expect([...names.rows.values()].map((row) => row.changed)).toEqual([20, 0, 30]);
});

test("nothing is complete before the last page, and what cannot be told is forgotten once it can", () => {
  const names = new Names();
  names.apply(changes([held("a", 1)], { reset: true, more: true }), 1);
  expect(names.complete).toBe(false);
  names.lack = { part: "locks", code: "UNAVAILABLE", message: "no leader" };
  names.apply(changes([], { reset: true }), 2);
  expect([names.complete, names.lack, names.rows.size]).toEqual([true, undefined, 0]);
});
