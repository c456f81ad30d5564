import { describe, expect, test } from "vitest";
import { random } from "../testing/build";
import { Engine, EngineError, type Listener } from "./client";
import { FrameReader } from "./frames";
import type { Frame, Problem } from "./protocol";

function encoded(header: object, body: Uint8Array = new Uint8Array(0)): Uint8Array {
  const head = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(8 + head.length + body.length);
  new DataView(bytes.buffer).setUint32(0, head.length, true);
  new DataView(bytes.buffer).setUint32(4, body.length, true);
  bytes.set(head, 8);
  bytes.set(body, 8 + head.length);
  return bytes;
}

describe("the reader of frames", () => {
  test("does not care where the stream is cut", () => {
    const all = [encoded({ id: 1, type: "run", name: "é" }), encoded({ id: 1, type: "chunk" }, Uint8Array.of(1, 2, 3)), encoded({ id: 1, type: "result" })];
    const stream = Uint8Array.from(all.flatMap((bytes) => [...bytes]));
    for (let seed = 1; seed <= 50; seed++) {
      const draw = random(seed);
      const reader = new FrameReader();
      const frames: Frame[] = [];
      for (let at = 0; at < stream.length; ) {
        const next = Math.min(stream.length, at + 1 + draw(40));
        frames.push(...reader.push(stream.subarray(at, next)));
        at = next;
      }
      expect(reader.rest).toBe(0);
      expect(frames.map((f) => f.header.type)).toEqual(["run", "chunk", "result"]);
      expect(frames[0]?.body).toBeNull();
      expect([...new Uint8Array(frames[1]?.body ?? new ArrayBuffer(0))]).toEqual([1, 2, 3]);
    }
  });
});

/** An engine whose frames the test makes. */
function fake(): { engine: Engine; sent: Record<string, unknown>[]; listener: Listener; lost: Problem[]; closed: () => boolean } {
  const sent: Record<string, unknown>[] = [];
  const lost: Problem[] = [];
  let listener: Listener | undefined;
  let closed = false;
  const engine = new Engine(
    (l) => {
      listener = l;
      return { send: (request) => void sent.push(request as unknown as Record<string, unknown>), close: () => (closed = true) };
    },
    (problem) => lost.push(problem),
  );
  return { engine, sent, listener: listener as unknown as Listener, lost, closed: () => closed };
}

describe("the engine", () => {
  test("brings answers to their questions, whatever the order", async () => {
    const { engine, sent, listener } = fake();
    const first = engine.call<{ n: number }>({ call: "states" });
    const partial: string[] = [];
    const second = engine.call<{ n: number }>({ call: "open" }, (frame) => partial.push(frame.header.type));
    listener.frame({ header: { id: sent[1]?.id as number, type: "run" }, body: null });
    listener.frame({ header: { id: sent[1]?.id as number, type: "result", n: 2 }, body: null });
    listener.frame({ header: { id: sent[0]?.id as number, type: "result", n: 1 }, body: null });
    expect([(await first).n, (await second).n]).toEqual([1, 2]);
    expect(partial).toEqual(["run"]);
  });

  test("fails a request by its error", async () => {
    const { engine, sent, listener } = fake();
    const call = engine.call({ call: "parse" });
    listener.frame({ header: { id: sent[0]?.id as number, type: "error", code: "scenario", message: "no", line: 3 }, body: null });
    await expect(call).rejects.toMatchObject({ problem: { code: "scenario", line: 3 } });
  });

  test("that ends fails everything once, and all that comes later", async () => {
    const { engine, listener, lost, closed } = fake();
    const call = engine.call({ call: "open" });
    listener.failed({ code: "lost", message: "out of memory" });
    listener.failed({ code: "lost", message: "again" });
    await expect(call).rejects.toBeInstanceOf(EngineError);
    await expect(engine.call({ call: "hello" })).rejects.toThrow("out of memory");
    expect(lost).toHaveLength(1);
    expect(closed()).toBe(true);
  });

  test("of another protocol is refused", async () => {
    const { engine, sent, listener } = fake();
    const hello = engine.hello();
    listener.frame({ header: { id: sent[0]?.id as number, type: "result", protocol: 99 }, body: null });
    await expect(hello).rejects.toThrow("the engine protocol 99");
  });
});
