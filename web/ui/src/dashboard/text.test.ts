import { expect, test } from "vitest";
import { age, bytes, duration, latency, rate, shown, span, who } from "./text";

test("what is invisible, or changes direction or lines, is written as its number", () => {
  expect(shown("a\u202Egnp.exe")).toBe("a\\u{202e}gnp.exe");
  expect(shown("tab\there\nnul\0")).toBe("tab\\u{9}here\\u{a}nul\\u{0}");
  expect(shown("\u200b\u2066\u2069\ufeff\u2028\u061c\u{e0041}")).toBe("\\u{200b}\\u{2066}\\u{2069}\\u{feff}\\u{2028}\\u{61c}\\u{e0041}");
  expect(shown("\ud800")).toBe("\\u{d800}");
  expect(shown("reports/nächtlich 夜 🙂 שלום")).toBe("reports/nächtlich 夜 🙂 שלום");
});

test("times, sizes and rates", () => {
  expect([0, 999, 59_999, 61_000, 600_000, 3_600_000, 10_920_000, 90_000_000, -5].map((ms) => age(ms))).toEqual(["0 s", "0 s", "59 s", "1 min 1 s", "10 min", "1 h", "3 h 2 min", "1 d 1 h", "0 s"]);
  expect([0, 320, 9_949, 9_951, 61_000].map((ms) => span(ms))).toEqual(["0.0 s", "0.3 s", "9.9 s", "9 s", "1 min 1 s"]);
  expect([undefined, 0, 999, 1000, 33_554_432, 999_600_000].map((n) => bytes(n))).toEqual(["–", "–", "999 B", "1.0 kB", "34 MB", "1.0 GB"]);
  expect([undefined, 7, 1500, 25_000, 2_500_000].map((us) => latency(us))).toEqual(["–", "7 µs", "1.5 ms", "25 ms", "2.5 s"]);
  expect([undefined, 0, 0.333333, 12.34, 1234.5].map((n) => rate(n))).toEqual(["–", "0", "0.333", "12.3", "1,235"]);
});

test("durations as the server writes them", () => {
  expect([undefined, "", "10s", "1h2m0.5s", "1m30s", "250ms", "5µs", "0s"].map((text) => duration(text))).toEqual([0, 0, 10_000, 3_720_500, 90_000, 250, 0.005, 0]);
});

test("a program is named by what it said of itself", () => {
  expect(who({ program: "report", pid: 4711, host: "db1" })).toBe("report 4711 on db1");
  expect(who({ program: "", pid: 0, host: "", session_id: "s-0123456789abcdef" })).toBe("session s-01234567…");
  expect(who({ program: "a\u202eb", pid: 0, host: "" })).toBe("a\\u{202e}b");
});
