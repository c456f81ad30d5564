import { describe, expect, test } from "vitest";
import { flag } from "../engine/protocol";
import { runOf, type FlightRow, type RecordRow } from "../testing/build";
import { circle, unanswered } from "./waits";

const waiting = (process: number, change: RecordRow = {}): RecordRow => ({ process, kind: "acquire", flags: flag.waiting, ...change });

describe("unanswered requests", () => {
  const records: RecordRow[] = [
    waiting(0), // #1 asks 1 and 2
    { process: 1, kind: "deliver", cause: 1 }, // #2 and answers
    { process: 2, kind: "deliver", cause: 1 }, // #3 keeps its answer back
    waiting(0, { kind: "deliver", cause: 2 }), // #4
    { process: 2, kind: "release" }, // #5 answers now
    { process: 0, kind: "deliver", cause: 5, flags: flag.inside | flag.granted }, // #6
  ];
  const flights: FlightRow[] = [
    { sender: 1, to: 1, end: 2 },
    { sender: 1, to: 2, end: 3 },
    { sender: 2, to: 0, end: 4 },
    { sender: 5, to: 0, end: 6 },
  ];
  const run = runOf([1, 2, 3], records, flights);
  const at = (record: number) => unanswered(run, record).map((w) => [w.from, w.to]);

  test("are open until an answer has arrived", () => {
    expect(at(0)).toEqual([]);
    expect(at(1)).toEqual([[0, 1], [0, 2]]);
    expect(at(3)).toEqual([[0, 1], [0, 2]]);
    expect(at(4)).toEqual([[0, 2]]);
    expect(at(5)).toEqual([[0, 2]]);
    expect(at(6)).toEqual([]);
  });

  test("are not answered by what was sent before they arrived", () => {
    const crossed = runOf([1, 2], [waiting(0), waiting(1), waiting(0, { kind: "deliver", cause: 2 }), waiting(1, { kind: "deliver", cause: 1 })], [
      { sender: 1, to: 1, end: 4 },
      { sender: 2, to: 0, end: 3 },
    ]);
    expect(unanswered(crossed, 4)).toEqual([{ from: 0, to: 1, owed: true }, { from: 1, to: 0, owed: true }]);
    expect(circle(unanswered(crossed, 4))).toEqual([0, 1]);
    expect(circle(unanswered(crossed, 3))).toEqual([]); // one request is on its way
  });

  test("make no circle once an answer was sent", () => {
    const answered = runOf([1, 2], [waiting(0), waiting(1), waiting(0, { kind: "deliver", cause: 2 }), waiting(1, { kind: "deliver", cause: 1 })], [
      { sender: 1, to: 1, end: 4 },
      { sender: 2, to: 0, end: 3 },
      { sender: 4, to: 0 },
    ]);
    expect(unanswered(answered, 4)).toEqual([{ from: 0, to: 1, owed: false }, { from: 1, to: 0, owed: true }]);
    expect(circle(unanswered(answered, 4))).toEqual([]);
  });

  test("are not what the process itself answers while it waits", () => {
    const refused = runOf([1, 2, 3], [waiting(0), waiting(2), waiting(0, { kind: "deliver", cause: 2 })], [
      { sender: 1, to: 1 },
      { sender: 2, to: 0, end: 3 },
      { sender: 3, to: 2, type: 3 }, // a refusal
    ]);
    refused.head.messages.push({ name: "FAILED", class: "protocol", layer: 0, uses: [] });
    expect(unanswered(refused, 3).filter((w) => w.from === 0)).toEqual([{ from: 0, to: 1, owed: false }]);
    const asks = runOf([1, 2, 3], [waiting(0), waiting(2), waiting(0, { kind: "deliver", cause: 2 })], [
      { sender: 1, to: 1 },
      { sender: 2, to: 0, end: 3 },
      { sender: 3, to: 2 }, // a request, of the type that it asked with
    ]);
    expect(unanswered(asks, 3).filter((w) => w.from === 0)).toEqual([{ from: 0, to: 1, owed: false }, { from: 0, to: 2, owed: false }]);
  });

  test("stay open when the answer is lost", () => {
    const lost = runOf([1, 2], [waiting(0), waiting(1), waiting(1, { kind: "deliver", cause: 1 }), { process: 1, kind: "drop" }], [
      { sender: 1, to: 1, end: 3 },
      { sender: 3, to: 0, end: 4, fate: 2 },
    ]);
    expect(unanswered(lost, 3)).toEqual([{ from: 0, to: 1, owed: false }]);
    expect(unanswered(lost, 4)).toEqual([{ from: 0, to: 1, owed: true }]);
  });

  test("are only of the types that processes ask with, if there are any", () => {
    const passes = runOf([1, 2, 3], [waiting(0), waiting(0, { kind: "deliver", cause: 3 })], [
      { sender: 1, to: 1 },
      { sender: 2, to: 2, type: 3 }, // what it passes on
    ]);
    passes.head.messages.push({ name: "TOKEN", class: "protocol", layer: 0, uses: [] });
    expect(unanswered(passes, 2)).toEqual([{ from: 0, to: 1, owed: false }]);
  });

  test("are answered by what the algorithm calls an answer, and asked again by what asks", () => {
    // 1 asks 2, which answers FAILED, then GRANT, and gets the vote back by YIELD.
    const voted = runOf(
      [1, 2],
      [
        waiting(0), // #1
        { process: 1, kind: "deliver", cause: 1 }, // #2 says FAILED
        waiting(0, { kind: "deliver", cause: 2 }), // #3
        { process: 1, kind: "release" }, // #4 says GRANT
        waiting(0, { kind: "deliver", cause: 4 }), // #5 gives the vote back
        { process: 1, kind: "deliver", cause: 5 }, // #6
      ],
      [
        { sender: 1, to: 1, end: 2 },
        { sender: 2, to: 0, end: 3, type: 3 },
        { sender: 4, to: 0, end: 5, type: 4 },
        { sender: 5, to: 1, end: 6, type: 5 },
      ],
    );
    voted.head.messages[0] = { ...voted.head.messages[0], name: "REQ", class: "protocol", layer: 0, uses: [], part: "asks" };
    const more = { class: "protocol", layer: 0, uses: [] };
    voted.head.messages.push({ ...more, name: "FAILED" }, { ...more, name: "GRANT", part: "answers" }, { ...more, name: "YIELD", part: "asks" });
    const open = { from: 0, to: 1, owed: true };
    expect(unanswered(voted, 3)).toEqual([open]);
    expect(unanswered(voted, 4)).toEqual([{ ...open, owed: false }]);
    expect(unanswered(voted, 5)).toEqual([{ ...open, owed: false }]); // YIELD is on its way
    expect(unanswered(voted, 6)).toEqual([open]);
  });

  test("of a process that gave up or crashed are none", () => {
    const gone = runOf([1, 2], [waiting(0), { process: 0, kind: "cancel" }], [{ sender: 1, to: 1 }]);
    expect(unanswered(gone, 1)).toHaveLength(1);
    expect(unanswered(gone, 2)).toEqual([]);
  });
});

describe("a circle", () => {
  const owed = (...pairs: [number, number][]) => pairs.map(([from, to]) => ({ from, to, owed: true }));

  test("is found, and told from its least process", () => {
    expect(circle(owed([2, 0], [0, 1], [1, 2]))).toEqual([0, 1, 2]);
    expect(circle(owed([0, 3], [3, 4], [2, 1], [1, 2]))).toEqual([1, 2]);
  });

  test("is none where there is none", () => {
    expect(circle([])).toEqual([]);
    expect(circle(owed([0, 1], [0, 2], [1, 2]))).toEqual([]);
  });
});
