import { describe, expect, test } from "vitest";
import { csvOf } from "./csv";
import { apart, linearScale, logScale } from "./scale";

describe("scales", () => {
  test("equal factors have equal distances", () => {
    const scale = logScale([3, 300], 0, 100);
    expect(scale.at(3)).toBeCloseTo(0);
    expect(scale.at(30)).toBeCloseTo(50);
    expect(scale.at(300)).toBeCloseTo(100);
    expect(scale.ticks).toEqual([5, 10, 20, 50, 100, 200]);
    expect(logScale([1, 1e6], 0, 100).ticks).toEqual([1, 10, 100, 1000, 1e4, 1e5, 1e6]);
  });
  test("a single value stands in the middle", () => {
    expect(logScale([7, 7], 0, 100).at(7)).toBeCloseTo(50);
  });
  test("a linear one begins at 0", () => {
    const scale = linearScale([0.2, 1], 0, 100);
    expect([scale.at(0), scale.at(1)]).toEqual([0, 100]);
    expect(scale.ticks).toEqual([0, 0.25, 0.5, 0.75, 1]);
  });
  test("labels move apart, in their order, and stay within", () => {
    expect(apart([10, 11, 50], 14, 0, 100)).toEqual([10, 24, 50]);
    expect(apart([99, 98, 100], 14, 0, 100)).toEqual([86, 72, 100]);
  });
});

test("a file of figures quotes what has a comma", () => {
  const figure = { algorithm: "a", n: 3, regime: "idle" as const, metric: "m", measured: 1.5, theory: null, bounds: [1, 2] as [number, number], formula: 'K, "or" 2', within: true };
  expect(csvOf([figure])).toBe('algorithm,n,regime,metric,measured,theory,lower bound,upper bound,formula,within\r\na,3,idle,m,1.5,,1,2,"K, ""or"" 2",yes\r\n');
});
