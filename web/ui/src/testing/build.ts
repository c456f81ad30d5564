import type { ChunkHead, Frame, RunHead } from "../engine/protocol";
import { Run } from "../lab/run";

/** A record for tests. What is left out is 0. */
export interface RecordRow {
  time?: number;
  cause?: number;
  rules?: number;
  row?: number;
  process?: number;
  peer?: number;
  flags?: number;
  kind?: string;
  type?: number;
}

export interface FlightRow {
  sender: number;
  to: number;
  end?: number;
  type?: number;
  fate?: number;
}

export const kinds = ["", "start", "deliver", "acquire", "release", "drop", "crash", "restart", "fire", "partition"];

export function headOf(labels: number[]): RunHead {
  return {
    run: 1,
    header: { algorithm: "test", labels },
    d: 1_000_000,
    messages: [
      { name: "REQ", class: "protocol", layer: 0, uses: [] },
      { name: "BEAT", class: "heartbeat", layer: 0, uses: [] },
    ],
    rules: [{ name: "R1", text: "ask", layer: 0 }],
    judged: [],
  };
}

/** chunk encodes rows as the engine does. */
export function chunk(head: Partial<ChunkHead>, records: RecordRow[], flights: FlightRow[] = [], ends: [number, number][] = []): Frame {
  const of = (read: (row: RecordRow) => number) => records.map(read);
  const parts: ArrayBufferView[] = [
    Float64Array.from(of((r) => r.time ?? 0)),
    Uint32Array.from(of((r) => r.cause ?? 0)),
    Uint32Array.from(of((r) => r.rules ?? 0)),
    Uint32Array.from(of(() => 0)),
    Uint32Array.from(of((r) => r.row ?? 0)),
    Uint32Array.from(of(() => 0)),
    Uint16Array.from(of((r) => r.process ?? 0)),
    Uint16Array.from(of((r) => r.peer ?? 65535)),
    Uint16Array.from(of((r) => r.flags ?? 0)),
    Uint8Array.from(of((r) => Math.max(0, kinds.indexOf(r.kind ?? "")))),
    Uint8Array.from(of((r) => r.type ?? 0)),
    Uint32Array.from(flights.map((f) => f.sender)),
    Uint32Array.from(flights.map((f) => f.end ?? 0)),
    Uint16Array.from(flights.map((f) => f.to)),
    Uint8Array.from(flights.map((f) => f.type ?? 1)),
    Uint8Array.from(flights.map((f) => f.fate ?? (f.end ? 1 : 0))),
    Uint32Array.from(ends.map((e) => e[0])),
    Uint32Array.from(ends.map((e) => e[1])),
  ];
  const body = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    body.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), at);
    at += part.byteLength;
  }
  const header = { id: 1, type: "chunk" as const, run: 1, from: 1, count: records.length, flights: { from: 0, count: flights.length }, ends: ends.length, ...head };
  return { header, body: body.buffer };
}

/** runOf makes a whole run. */
export function runOf(labels: number[], records: RecordRow[], flights: FlightRow[] = []): Run {
  const run = new Run(headOf(labels), kinds);
  run.append(chunk({}, records, flights));
  return run;
}

/** random returns a generator of numbers below a bound, from a seed. */
export function random(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** randomRun makes a run of n records in which messages go to and fro. */
export function randomRun(seed: number, n: number, processes: number): Run {
  const draw = random(seed);
  const records: RecordRow[] = [];
  const flights: FlightRow[] = [];
  let time = 0;
  for (let i = 1; i <= n; i++) {
    time += draw(3) * 500_000;
    const open = flights.filter((f) => !f.end);
    const landing = open.length > 0 && draw(3) > 0 ? open[draw(open.length)] : undefined;
    const process = landing ? landing.to : draw(processes);
    records.push({ time, process, cause: landing?.sender ?? 0, kind: landing ? "deliver" : "acquire", type: landing ? 1 : 0, row: i - 1 });
    if (landing) landing.end = i;
    if (draw(2)) flights.push({ sender: i, to: (process + 1 + draw(Math.max(1, processes - 1))) % processes, type: 1 });
  }
  for (const f of flights) f.fate = f.end ? 1 : 0;
  return runOf(Array.from({ length: processes }, (_, p) => p + 1), records, flights);
}
