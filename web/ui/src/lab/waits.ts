import { fate, flag } from "../engine/protocol";
import type { Run } from "./run";

/** A wait is a process that asked another and has no answer yet. Both are ranks. */
export interface Wait {
  from: number;
  to: number;
  /** The other got the request, and has sent nothing back since. */
  owed: boolean;
}

/**
 * unanswered returns, for each client that waits after a record, the processes that
 * were sent a message since it asked, and that have not answered. It comes from the
 * messages alone, so it holds for every algorithm: an answer is any message that was
 * sent at or after the arrival of the first message, and has arrived. What the waiting
 * process itself sends back on a message is no request, unless it is of a type that it
 * asked with.
 */
export function unanswered(run: Run, at: number): Wait[] {
  const since = waitingSince(run, at);
  if (since.size === 0) return [];
  const first = new Map<number, { wait: Wait; landed: number }>(); // by pair
  const asked = typesAsked(run, since);
  const n = run.labels.length;
  for (let f = 0; f < run.flights; f++) {
    const sender = run.sender[f] ?? 0;
    if (sender === 0 || sender > at || ((run.fate[f] ?? 0) & fate.copy) !== 0) continue;
    const from = run.process[sender - 1] ?? 0;
    const to = run.receiver[f] ?? 0;
    if (from === to || sender < (since.get(from) ?? Infinity) || !isProtocol(run, f) || first.has(from * n + to)) continue;
    if (repliesTo(run, sender) === to && !asked.get(from)?.has(run.flightType[f] ?? 0)) continue;
    const landed = landedAt(run, f, at);
    first.set(from * n + to, { wait: { from, to, owed: landed <= at }, landed });
  }
  for (let f = 0; f < run.flights; f++) {
    const sender = run.sender[f] ?? 0;
    if (sender === 0 || sender > at || !isProtocol(run, f)) continue;
    const open = first.get((run.receiver[f] ?? 0) * n + (run.process[sender - 1] ?? 0));
    if (!open || sender < open.landed) continue;
    open.wait.owed = false;
    if (landedAt(run, f, at) <= at) first.delete(open.wait.from * n + open.wait.to);
  }
  return [...first.values()].map((asked) => asked.wait);
}

const isProtocol = (run: Run, f: number): boolean => run.head.messages[(run.flightType[f] ?? 0) - 1]?.class === "protocol";

/** repliesTo is the sender of the message that a record delivered, or -1 if it delivered none. */
function repliesTo(run: Run, record: number): number {
  const cause = run.cause[record - 1] ?? 0;
  return cause > 0 ? (run.process[cause - 1] ?? -1) : -1;
}

/** typesAsked finds the types of the messages that each waiting client sent when it asked. */
function typesAsked(run: Run, since: ReadonlyMap<number, number>): Map<number, Set<number>> {
  const types = new Map<number, Set<number>>();
  for (let f = 0; f < run.flights; f++) {
    const sender = run.sender[f] ?? 0;
    const from = run.process[sender - 1] ?? 0;
    if (sender === 0 || since.get(from) !== sender) continue;
    const of = types.get(from) ?? new Set<number>();
    types.set(from, of.add(run.flightType[f] ?? 0));
  }
  return types;
}

/** landedAt is the record at which a message arrived, or Infinity if it has not by then. */
function landedAt(run: Run, f: number, at: number): number {
  const end = run.end[f] ?? 0;
  return end > 0 && end <= at && run.fateOf(f) === fate.arrived ? end : Infinity;
}

/** waitingSince finds the clients that wait, and the records at which they asked. */
function waitingSince(run: Run, at: number): Map<number, number> {
  const since = new Map<number, number>();
  for (let record = 1; record <= at; record++) {
    if (run.has(record, flag.network)) continue;
    const rank = run.process[record - 1] ?? 0;
    if (!run.has(record, flag.waiting) || run.has(record, flag.down)) since.delete(rank);
    else if (!since.has(rank)) since.set(rank, record);
  }
  return since;
}

/**
 * circle returns ranks that owe each other answers in a circle, from the least, or none.
 * Requests and answers that are still on their way make no circle.
 */
export function circle(waits: readonly Wait[]): number[] {
  const next = new Map<number, number[]>();
  for (const { from, to } of waits.filter((wait) => wait.owed)) next.set(from, [...(next.get(from) ?? []), to].sort((a, b) => a - b));
  const done = new Set<number>();
  for (const start of [...next.keys()].sort((a, b) => a - b)) {
    const found = walk(start, next, done, []);
    if (found.length > 0) return found;
  }
  return [];
}

function walk(rank: number, next: ReadonlyMap<number, number[]>, done: Set<number>, path: number[]): number[] {
  const at = path.indexOf(rank);
  if (at >= 0) {
    const ring = path.slice(at);
    const least = ring.indexOf(Math.min(...ring));
    return [...ring.slice(least), ...ring.slice(0, least)];
  }
  if (done.has(rank)) return [];
  for (const to of next.get(rank) ?? []) {
    const found = walk(to, next, done, [...path, rank]);
    if (found.length > 0) return found;
  }
  done.add(rank);
  return [];
}
