import { describe, expect, test } from "vitest";
import { decode, encode, plainView, type Place } from "./codec";
import { random } from "../testing/build";
import { pack, unpack, unpackedLimit } from "./pack";

const run = (change: Partial<Extract<Place, { page: "run" }>>): Place => ({
  page: "run",
  source: { id: "mutex/lamport" },
  cursor: 0,
  view: { ...plainView },
  others: [],
  ...change,
});

describe("a place in a URL", () => {
  test("reads well", async () => {
    expect(await encode(run({ cursor: 8, pick: { process: 3 } }))).toBe("#1/run/mutex/lamport?t=8&p=3");
    expect(await encode(run({ pick: { message: { sender: 6, to: 1 } } }))).toBe("#1/run/mutex/lamport?m=6>1");
    expect(await encode({ page: "gallery", others: [] })).toBe("#1/gallery");
    const search: Place = { page: "check", algorithm: "maekawa-slides", others: [["n", "3"]] };
    expect(await encode(search)).toBe("#1/check/maekawa-slides?n=3");
    expect(await decode("#1/check/maekawa-slides?n=3")).toEqual({ place: search });
    const pair: Place = { page: "compare", ids: ["mutex/lamport", "bully"], others: [] };
    expect(await encode(pair)).toBe("#1/compare/mutex%2Flamport/bully");
    expect(await decode("#1/compare/mutex%2Flamport/bully")).toEqual({ place: pair });
    expect((await decode("#1/compare/bully")).problem).toBe("unknown");
    expect(await decode("#1/run/mutex/lamport?t=8&new=1&engine=SECRET"), "what is unknown stays, the token of the engine does not").toEqual({ place: run({ cursor: 8, others: [["new", "1"]] }) });
    const audit: Place = { page: "audit", others: [["algorithm", "lamport"], ["without", "FIFO links"]] };
    expect(await encode(audit)).toBe("#1/audit?algorithm=lamport&without=FIFO%20links");
    expect(await decode("#1/audit?algorithm=lamport&without=FIFO%20links")).toEqual({ place: audit });
    expect(await decode("#1/charts")).toEqual({ place: { page: "charts", others: [] } });
    const lesson: Place = { page: "learn", lesson: "voting", step: 3, others: [] };
    expect(await encode(lesson)).toBe("#1/learn/voting/3");
    expect(await decode("#1/learn/voting/3")).toEqual({ place: lesson });
    expect(await encode({ page: "learn", lesson: "", step: 1, others: [] })).toBe("#1/learn");
    expect(await decode("#1/learn/voting/0x")).toEqual({ place: { page: "learn", lesson: "voting", step: 1, others: [] } });
  });

  test.each(Array.from({ length: 200 }, (_, seed) => seed + 1))("comes back, seed %i", async (seed) => {
    const draw = random(seed);
    const letters = ["a", "/", "?", "&", "=", "#", "~", "%", " ", "é", "文", "\n", "\u202e", "1"];
    const text = (most: number) => Array.from({ length: draw(most) }, () => letters[draw(letters.length)]).join("");
    const place = run({
      source: draw(2) ? { text: text(400) } : { id: "x" + text(12) },
      cursor: draw(3) ? draw(1_000_000) : 0,
      view: { axis: draw(2) ? "real" : "logical", embed: draw(2) === 1 },
      others: draw(2) ? [["z" + text(5), text(9)]] : [],
    });
    if (draw(2)) place.others = [...place.others, ["later", "1"]];
    if (place.page === "run" && draw(2)) place.pick = draw(2) ? { process: draw(99) } : { message: { sender: draw(99), to: draw(9) } };
    if (place.page === "run" && draw(2)) place.hash = "0123456789ab";
    expect(await decode(await encode(place))).toEqual({ place });
  });

  test("keeps what it does not know", async () => {
    const url = "#1/run/bully?t=4&lens=why&a=spiral";
    const { place } = await decode(url);
    expect(place).toMatchObject({ cursor: 4, others: [["lens", "why"], ["a", "spiral"]] });
    expect(await encode(place as Place)).toBe(url);
  });

  test("of a newer version says so", async () => {
    expect(await decode("#2/run/mutex/lamport?t=8")).toEqual({ problem: "newer", detail: "2", partial: "run/mutex/lamport" });
  });

  test.each(["#1/run/~!!", "#1/run/~abcde", "#x/run/a", "#0/run/a", "#1/teapot", "#1/run/", "#1/run/~AAAA"])("%s explains itself", async (url) => {
    const decoded = await decode(url);
    expect(decoded.problem).toMatch(/damaged|unknown/);
  });

  test("that was cut off shows what could be read", async () => {
    const text = Array.from({ length: 400 }, (_, i) => `algorithm: a${i * i}`).join("\n");
    const url = await encode(run({ source: { text } }));
    const decoded = await decode(url.slice(0, -300));
    expect(decoded.problem).toBe("damaged");
    if (decoded.problem) expect(decoded.partial.startsWith("algorithm: a0\nalgorithm: a1")).toBe(true);
  });

  test("never throws, whatever is pasted", async () => {
    for (let seed = 1; seed <= 400; seed++) {
      const draw = random(seed);
      const good = await encode(run({ source: { text: "algorithm: lamport\n".repeat(draw(30)) }, cursor: draw(50) }));
      const cut = [...good];
      for (let i = 0; i < 1 + draw(4); i++) cut[draw(cut.length)] = String.fromCharCode(33 + draw(94));
      await expect(decode(cut.slice(0, 1 + draw(cut.length)).join(""))).resolves.toBeDefined();
    }
  });
});

describe("a packed text", () => {
  test("is short for what repeats", async () => {
    const text = "  - {at: 0, acquire: 1}\n".repeat(200);
    expect((await pack(text)).length).toBeLessThan(120);
    expect(await unpack(await pack(text))).toBe(text);
  });

  test("that unpacks to too much is refused", async () => {
    const bomb = await pack("a".repeat(unpackedLimit + 1));
    await expect(unpack(bomb)).rejects.toThrow("more than 65536 bytes");
    expect(await unpack(await pack("a".repeat(unpackedLimit)))).toHaveLength(unpackedLimit);
  });
});
