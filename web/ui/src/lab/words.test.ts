import { describe, expect, test } from "vitest";
import { commandFor } from "./command";
import { objectiveOf } from "./gallery";
import { besideText, timeText } from "./words";

describe("words", () => {
  test("times have the unit of the whole run", () => {
    expect(timeText(12_000_000)(2_500_000)).toBe("2.5 ms");
    expect(timeText(20_000_000_000)(1_500_000_000)).toBe("1.5 s");
    expect(timeText(5_000)(1_000)).toBe("1 µs");
    expect(timeText(0)(0)).toBe("0 ms");
    expect(timeText(500)(500)).toBe("500 ns");
  });

  test("beside a line stand timers, what happens and what follows", () => {
    const base = { id: 1, t: 0, p: 1 };
    expect(besideText({ ...base, kind: "fire", timer: "wait(3)", effects: [{ kind: "suspect", peer: 3 } as never] })).toEqual(["wait(3)", "suspect 3"]);
    expect(besideText({ ...base, kind: "acquire", note: "refused: it waits already" })).toEqual(["acquire", "refused: it waits already"]);
    expect(besideText({ ...base, kind: "deliver", effects: [{ kind: "send" }, { kind: "grant", fence: "3" }] })).toEqual([]);
    expect(besideText({ ...base, kind: "drop", note: "lost" })).toEqual([]);
  });

  test("an objective falls back to the first sentence", () => {
    expect(objectiveOf("Who waits?", "x")).toBe("Who waits?");
    expect(objectiveOf(undefined, "One thing\nhappens. Then another.")).toBe("One thing happens.");
    expect(objectiveOf(undefined, "001_ab.txt, nobody enters. More.")).toBe("Nobody enters.");
    expect(objectiveOf(undefined, undefined)).toBe("");
  });

  test("a command repeats a run", () => {
    expect(commandFor("mutex/lamport", "")).toBe("conclave sim lab/scenarios/mutex/lamport.yaml");
    expect(commandFor(undefined, "n: 3\nEND\n")).toBe("cat > scenario.yaml <<'END_'\nn: 3\nEND\nEND_\nconclave sim scenario.yaml");
  });
});
