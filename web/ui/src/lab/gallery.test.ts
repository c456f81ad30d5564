import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { groups, matches, objectiveOf, pairs, ranked, twinOf } from "./gallery";

const file = (id: string) => fileURLToPath(new URL(`../../../../lab/scenarios/${id}.yaml`, import.meta.url));
const objectives = Object.fromEntries(
  [...readFileSync(fileURLToPath(new URL("../../../../lab/course/objectives.yaml", import.meta.url)), "utf8").matchAll(/^([^#\s]\S*): "(.*)"$/gm)].map((m) => [m[1] ?? "", m[2] ?? ""]),
);
const grouped = groups.flatMap((g) => g.ids);

test("the gallery names scenarios that exist, once, each with an objective", () => {
  expect([...Object.keys(objectives), ...grouped, ...pairs.flatMap((p) => p.ids)].filter((id) => !existsSync(file(id)))).toEqual([]);
  expect(grouped.filter((id, i) => grouped.indexOf(id) !== i || objectives[id] === undefined)).toEqual([]);
  expect(Object.keys(objectives).filter((id) => !grouped.includes(id))).toEqual([]);
});

test("an objective is one short sentence; without one the text of the scenario begins it", () => {
  for (const text of Object.values(objectives)) expect(text).toMatch(/^[A-Z].{10,90}[.?]$/);
  expect(objectiveOf("", "the token is lost. Nobody has it.")).toBe("The token is lost.");
  expect(objectiveOf(undefined, undefined)).toBe("");
});

test("each run of a pair leads to both side by side", () => {
  expect(twinOf("maekawa-without-deadlock")).toEqual({ id: "maekawa-deadlock", href: "#1/compare/maekawa-deadlock/maekawa-without-deadlock" });
  expect(twinOf("maekawa-deadlock")?.id).toBe("maekawa-without-deadlock");
  expect([twinOf("mutex/maekawa"), twinOf(undefined)]).toEqual([undefined, undefined]);
});

test("a search finds each word, also with another ending", () => {
  const about = "Three processes with the voting sets 1 2, 2 3 and 1 3 ask at once.";
  for (const query of ["three voters", "VOTES", "ask at once", "", "sets three"]) expect(matches(about, query), query).toBe(true);
  for (const query of ["four voters", "token"]) expect(matches(about, query), query).toBe(false);
});

test("where to start is found first, and what the model checker found last", () => {
  const found = [
    { id: "assumptions/maekawa-loss", about: "found by the model checker (N=2)" },
    { id: "documents/other", about: "Two ask." },
    { id: "mutex/maekawa", about: "" },
    { id: "maekawa-deadlock", about: "" },
  ];
  expect(ranked(found).map((s) => s.id)).toEqual(["maekawa-deadlock", "mutex/maekawa", "documents/other", "assumptions/maekawa-loss"]);
});
