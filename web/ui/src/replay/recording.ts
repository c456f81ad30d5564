import { EngineError, type Connect, type Engine } from "../engine/client";
import type { ChunkHead, Described, Frame, Hello, ProcessState, Request, RunHead, TraceRecord } from "../engine/protocol";
import { flag } from "../engine/protocol";
import { Run } from "../lab/run";
import { pack, unpack } from "../url/pack";

/** The version of recordings: a page plays those of its own. */
const version = 1;

/** mostRecords is how long a run may be that is recorded: every state of it is in the file. */
export const mostRecords = 3000;

/** The most bytes that a recording may unpack to. */
const limit = 64 * 1024 * 1024;

/** How many requests are under way at a time while a run is recorded. */
const atOnce = 16;

/** Recording is a run with all that an engine would say of it. */
export interface Recording {
  version: number;
  hello: Hello;
  text: string;
  cursor: number;
  head: RunHead;
  chunk: Omit<ChunkHead, "run">;
  /** The columns, in base64. */
  body: string;
  end: Record<string, unknown>;
  records: TraceRecord[];
  sentences: string[];
  /** The states before the first record, by rank; and of each record that of its process. */
  start: ProcessState[];
  after: (ProcessState | null)[];
}

/** record has an engine run a scenario, and tell all of it. */
export async function record(engine: Engine, hello: Hello, text: string, name: string, cursor: number): Promise<Recording> {
  let run: Run | undefined;
  let head: RunHead | undefined;
  const bodies: Frame[] = [];
  const answer = await engine.frame({ call: "open", text, name }, (frame) => {
    if (frame.header.type === "run") {
      head = frame.header as unknown as RunHead;
      run = new Run(head, hello.kinds);
    }
    if (frame.header.type === "chunk") {
      run?.append(frame);
      bodies.push(frame);
    }
  });
  if (!run || !head) throw new EngineError({ code: "internal", message: "the run has no records" });
  const { run: id } = head;
  try {
    if (run.count > mostRecords) throw new EngineError({ code: "limit", message: `the run has ${run.count} records; a file that plays it has at most ${mostRecords}` });
    const records: TraceRecord[] = [];
    const sentences: string[] = [];
    for (let from = 1; from <= run.count; from += 500) {
      const part = await engine.call<Described>({ call: "describe", run: id, from, to: Math.min(run.count, from + 499) });
      records.push(...part.records);
      sentences.push(...part.sentences);
    }
    const statesAt = async (at: number, ranks?: number[]) => (await engine.call<{ processes: ProcessState[] }>({ call: "states", run: id, at, ...(ranks ? { ranks } : {}) })).processes;
    const after: (ProcessState | null)[] = [];
    for (let from = 1; from <= run.count; from += atOnce) {
      const some = Array.from({ length: Math.min(atOnce, run.count - from + 1) }, (_, i) => from + i);
      after.push(...(await Promise.all(some.map(async (at) => (run?.has(at, flag.network) ? null : ((await statesAt(at, [run?.process[at - 1] ?? 0]))[0] ?? null))))));
    }
    const { run: _id, id: _request, type: _type, ...end } = answer.header;
    return { version, hello, text, cursor, head, ...joined(run), end, records, sentences, start: await statesAt(0), after };
  } finally {
    await engine.call({ call: "close", run: id }).catch(() => undefined);
  }
}

/** joined is a whole run as one chunk. */
function joined(run: Run): { chunk: Recording["chunk"]; body: string } {
  const { count: n, flights: f } = run;
  const parts = [
    ...[run.time, run.cause, run.rulesLow, run.rulesHigh, run.row, run.index, run.process, run.peer, run.flags, run.kind, run.type].map((column) => column.subarray(0, n)),
    ...[run.sender, run.end, run.receiver, run.flightType, run.fate].map((column) => column.subarray(0, f)),
  ];
  let binary = "";
  for (const part of parts) for (const byte of new Uint8Array(part.buffer, part.byteOffset, part.byteLength)) binary += String.fromCharCode(byte);
  return { chunk: { from: 1, count: n, flights: { from: 0, count: f }, ends: 0 }, body: btoa(binary) };
}

export const packed = (recording: Recording): Promise<string> => pack(JSON.stringify(recording));

/** unpacked throws if a file has a damaged recording, or one of another version. */
export async function unpacked(text: string): Promise<Recording> {
  const recording = JSON.parse(await unpack(text.trim(), limit)) as Recording;
  if (recording.version !== version) throw new Error(`recording of version ${recording.version}: this page plays version ${version}`);
  return recording;
}

/** recorded answers as the engine did that a run was recorded from. */
export const recorded =
  (recording: Recording): Connect =>
  (listener) => {
    const { head, chunk, body, end, records, sentences } = recording;
    const binary = Uint8Array.from(atob(body), (c) => c.charCodeAt(0)).buffer;
    const run = new Run(head, recording.hello.kinds);
    run.append({ header: { id: 0, type: "chunk", run: 1, ...chunk }, body: binary });

    const states = (at: number, ranks: readonly number[]): ProcessState[] =>
      ranks.flatMap((rank) => {
        for (let record = at; record >= 1; record--) {
          const known = recording.after[record - 1];
          if (known && known.rank === rank) return [known];
        }
        return recording.start.filter((state) => state.rank === rank);
      });
    const find = (text: string): number[] => {
      const wanted = text.toLowerCase();
      return records.flatMap((record, i) => (`${sentences[i]} ${JSON.stringify(record)}`.toLowerCase().includes(wanted) ? [i + 1] : []));
    };
    const empty = { algorithms: [], broken: [], scenarios: [], audited: [], assumptions: [], measured: [] };

    const answer = (request: Request & { id: number }): Frame[] => {
      const { id } = request;
      const result = (fields: object): Frame => ({ header: { ...(fields as Record<string, unknown>), id, type: "result" }, body: null });
      switch (request.call) {
        case "hello":
          return [result({ ...recording.hello, calls: ["hello", "catalog", "open", "describe", "states", "find", "close", "cancel"], formats: [] })];
        case "catalog":
          return [result(empty)];
        case "open":
          if (request.text !== recording.text) break;
          return [
            { header: { ...head, id, type: "run" }, body: null },
            { header: { ...chunk, run: head.run, id, type: "chunk" }, body: binary },
            result({ ...end, run: head.run }),
          ];
        case "describe": {
          const [from, to] = [request.from ?? 1, request.to ?? records.length];
          return [result({ run: head.run, from, records: records.slice(from - 1, to), sentences: sentences.slice(from - 1, to) })];
        }
        case "states":
          return [result({ run: head.run, at: request.at, processes: states(request.at ?? 0, request.ranks ?? head.header.labels.map((_, rank) => rank)) })];
        case "find":
          return [result({ run: head.run, records: find(request.query?.text ?? "").slice(0, 1000) })];
        case "close":
        case "cancel":
          return [result({})];
      }
      return [{ header: { id, type: "error", code: "request", message: "this file plays one run, and no other" }, body: null }];
    };
    let closed = false;
    return {
      send: (request) =>
        queueMicrotask(() => {
          if (!closed) for (const frame of answer(request)) listener.frame(frame);
        }),
      close: () => (closed = true),
    };
  };
