import { beforeEach, expect, test } from "vitest";
import { Branches, type Doc } from "./branches.svelte";

const doc = (text: string, cursor = 0): Doc => ({ source: { text }, text, cursor });
const names = (b: Branches) => b.shown.map(({ branch, depth }) => `${depth}${branch.doc.text}`);

// A tab that keeps things, as a browser has it.
const kept = new Map<string, string>();
beforeEach(() => {
  kept.clear();
  Object.assign(globalThis, { sessionStorage: { getItem: (k: string) => kept.get(k) ?? null, setItem: (k: string, v: string) => kept.set(k, v) } });
});

test("an edit in the past leaves both futures", () => {
  const b = new Branches();
  b.begin(doc("a"));
  b.add(doc("a", 5), doc("b"), "crash 1", false);
  expect(names(b)).toEqual(["0a", "1b"]);
  expect(b.undo(doc("b", 7))).toEqual(doc("a", 5));
  expect(b.current?.next).toBeDefined();
  b.add(doc("a", 3), doc("c"), "crash 2", false);
  expect(names(b)).toEqual(["0a", "1b", "1c"]);
  expect(b.go(doc("c", 1), b.shown[1]?.branch.id)).toEqual(doc("b", 7));
  expect(b.go(doc("b", 7), 99)).toBeUndefined();
});

test("what only goes on replaces where it came from, until somebody is there", () => {
  const b = new Branches();
  b.begin(doc("a"));
  b.add(doc("a"), doc("b"), "acquire 1", false);
  b.add(doc("b"), doc("c"), "REQ 1>2", true);
  b.add(doc("c"), doc("d"), "REQ 1>3", true);
  expect(names(b)).toEqual(["0a", "1d"]);
  expect(b.undo(doc("d"))).toEqual(doc("c"));
  expect(names(b)).toEqual(["0a", "1c", "2d"]);
});

test("a page that is loaded again has the branches of its tab, and no others", () => {
  const b = new Branches();
  b.begin(doc("a"));
  b.add(doc("a"), doc("b"), "crash 1", false);
  const again = new Branches();
  again.begin(doc("b"));
  expect(names(again)).toEqual(["0a", "1b"]);
  again.add(doc("b"), doc("c"), "crash 2", false);
  expect(new Set(again.shown.map(({ branch }) => branch.id)).size).toBe(3);
  const other = new Branches();
  other.begin(doc("x"));
  expect(names(other)).toEqual(["0x"]);
  kept.set("conclave-branches", "[null, 3");
  other.begin(doc("y"));
  expect(names(other)).toEqual(["0y"]);
  kept.set("conclave-branches", "[null, 3]");
  other.begin(doc("z"));
  expect(names(other)).toEqual(["0z"]);
});
