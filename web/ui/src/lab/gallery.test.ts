import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { groups, objectiveOf, objectives, pairs, twinOf } from "./gallery";

const file = (id: string) => fileURLToPath(new URL(`../../../../scenarios/${id}.yaml`, import.meta.url));
const grouped = groups.flatMap((g) => g.ids);

test("the gallery names scenarios that exist, once, each with an objective", () => {
  expect([...Object.keys(objectives), ...grouped, ...pairs.flatMap((p) => p.ids)].filter((id) => !existsSync(file(id)))).toEqual([]);
  expect(grouped.filter((id, i) => grouped.indexOf(id) !== i || objectives[id] === undefined)).toEqual([]);
  expect(Object.keys(objectives).filter((id) => !grouped.includes(id))).toEqual([]);
});

test("an objective is one short sentence; without one the text of the scenario begins it", () => {
  for (const text of Object.values(objectives)) expect(text).toMatch(/^[A-Z].{10,90}[.?]$/);
  expect(objectiveOf("none", "the token is lost. Nobody has it.")).toBe("The token is lost.");
  expect(objectiveOf(undefined, undefined)).toBe("");
});

test("each run of a pair leads to both side by side", () => {
  expect(twinOf("maekawa-without-deadlock")).toEqual({ id: "maekawa-deadlock", href: "#1/compare/maekawa-deadlock/maekawa-without-deadlock" });
  expect(twinOf("maekawa-deadlock")?.id).toBe("maekawa-without-deadlock");
  expect([twinOf("mutex/maekawa"), twinOf(undefined)]).toEqual([undefined, undefined]);
});
