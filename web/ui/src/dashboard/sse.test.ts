import { expect, test } from "vitest";
import { SentEvents, type SentEvent } from "./sse";

const text =
  ": a comment\n\n" +
  'event: status\ndata: {"a":1}\n\n' +
  "data: no kind\r\n\r\n" +
  "event: two\rdata: one\rdata: two\r\r" +
  "id: 7\nretry: 5\nevent: none\n\n" +
  "data:no space\ndata\ndata:  two spaces\n\n" +
  "event: ü\ndata: 🙂\n\n" +
  "event: cut\ndata: off";

const want: SentEvent[] = [
  { kind: "status", data: '{"a":1}' },
  { kind: "message", data: "no kind" },
  { kind: "two", data: "one\ntwo" },
  { kind: "message", data: "no space\n\n two spaces" },
  { kind: "ü", data: "🙂" },
];

test("a stream in one piece", () => {
  expect(new SentEvents().push(text)).toEqual(want);
});

test("a stream cut at every place, and into single characters", () => {
  for (let at = 0; at <= text.length; at++) {
    const parser = new SentEvents();
    expect([...parser.push(text.slice(0, at)), ...parser.push(text.slice(at))], `cut at ${at}`).toEqual(want);
  }
  const parser = new SentEvents();
  expect([...text].flatMap((c) => parser.push(c))).toEqual(want);
});

test("an event without data tells nothing, and its kind does not stay", () => {
  expect(new SentEvents().push("event: a\n\ndata: b\n\n")).toEqual([{ kind: "message", data: "b" }]);
});
