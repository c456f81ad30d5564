import { fate, flag } from "../engine/protocol";
import type { Run } from "./run";

/** A wait is a process that asked another and has no answer yet. Both are ranks. */
export interface Wait {
  from: number;
  to: number;
  /** The other got the request, and no answer is on its way. */
  owed: boolean;
}

/** A message: the record that sent it, and the one at which it arrived, or Infinity. */
interface Sent {
  sender: number;
  landed: number;
  lost: boolean;
}

/** What a process that waits asked another, and what the other sent. */
interface Asked {
  from: number;
  to: number;
  requests: Sent[];
  answers: Sent[];
}

/**
 * unanswered returns, for each client that waits after a record, the processes that it
 * asked since then, and that have not answered. It comes from the messages alone.
 *
 * If the algorithm says which types of messages ask and answer, only those count: the FAILED
 * of a voter does not count. Otherwise an answer is any message that was sent at or after
 * the arrival of the request, and has arrived. A request is the first message of a type
 * with which processes ask, or of any type if there is none. What the waiting process itself
 * sends back on a message does not count as a request, unless it is of a type that it asked with.
 */
export function unanswered(run: Run, at: number): Wait[] {
  const { since, began } = waitingSince(run, at);
  if (since.size === 0) return [];
  const parts = run.head.messages.map((message) => message.part ?? "");
  const declared = parts.some((part) => part !== "");
  const asked = typesAsked(run, began);
  const all = new Set([...asked.values()].flatMap((types) => [...types]));
  const n = run.labels.length;
  const pairs = new Map<number, Asked>();
  const isRequest = (sender: number, from: number, to: number, type: number): boolean => {
    if (declared) return parts[type - 1] === "asks";
    if (pairs.has(from * n + to) || (all.size > 0 && !all.has(type))) return false;
    return repliesTo(run, sender) !== to || asked.get(from)?.has(type) === true;
  };
  for (let f = 0; f < run.flights; f++) {
    const sender = run.sender[f] ?? 0;
    if (sender === 0 || sender > at || ((run.fate[f] ?? 0) & fate.copy) !== 0) continue;
    const from = run.process[sender - 1] ?? 0;
    const to = run.receiver[f] ?? 0;
    if (from === to || sender < (since.get(from) ?? Infinity) || !isProtocol(run, f) || !isRequest(sender, from, to, run.flightType[f] ?? 0)) continue;
    const pair = pairs.get(from * n + to) ?? { from, to, requests: [], answers: [] };
    pair.requests.push(sentOf(run, f, at));
    pairs.set(from * n + to, pair);
  }
  for (let f = 0; f < run.flights; f++) {
    const sender = run.sender[f] ?? 0;
    if (sender === 0 || sender > at || !isProtocol(run, f) || (declared && parts[(run.flightType[f] ?? 0) - 1] !== "answers")) continue;
    pairs.get((run.receiver[f] ?? 0) * n + (run.process[sender - 1] ?? 0))?.answers.push(sentOf(run, f, at));
  }
  return [...pairs.values()].flatMap((pair) => waitOf(pair, at) ?? []);
}

/** waitOf is the wait for the answers that have not arrived, if there are any. */
function waitOf({ from, to, requests, answers }: Asked, at: number): Wait | undefined {
  const open = requests.filter((request) => !answers.some((answer) => answer.sender >= request.landed && answer.landed <= at));
  if (open.length === 0) return undefined;
  return { from, to, owed: open.some((request) => request.landed <= at && !answers.some((answer) => answer.sender >= request.landed && !answer.lost)) };
}

const isProtocol = (run: Run, f: number): boolean => run.head.messages[(run.flightType[f] ?? 0) - 1]?.class === "protocol";

/** repliesTo is the sender of the message that a record delivered, or -1 if it delivered none. */
function repliesTo(run: Run, record: number): number {
  const cause = run.cause[record - 1] ?? 0;
  return cause > 0 ? (run.process[cause - 1] ?? -1) : -1;
}

/** typesAsked finds the types of the messages that each client sent when it asked. */
function typesAsked(run: Run, began: ReadonlySet<number>): Map<number, Set<number>> {
  const types = new Map<number, Set<number>>();
  for (let f = 0; f < run.flights; f++) {
    const sender = run.sender[f] ?? 0;
    if (!began.has(sender)) continue;
    const from = run.process[sender - 1] ?? 0;
    const of = types.get(from) ?? new Set<number>();
    types.set(from, of.add(run.flightType[f] ?? 0));
  }
  return types;
}

/** sentOf tells what has become of a message after a record. */
function sentOf(run: Run, f: number, at: number): Sent {
  const end = run.end[f] ?? 0;
  const ended = end > 0 && end <= at;
  const arrived = ended && run.fateOf(f) === fate.arrived;
  return { sender: run.sender[f] ?? 0, landed: arrived ? end : Infinity, lost: ended && !arrived };
}

/** waitingSince finds the clients that wait with the records at which they asked, and all records at which some client asked. */
function waitingSince(run: Run, at: number): { since: Map<number, number>; began: Set<number> } {
  const since = new Map<number, number>();
  const began = new Set<number>();
  for (let record = 1; record <= at; record++) {
    if (run.has(record, flag.network)) continue;
    const rank = run.process[record - 1] ?? 0;
    if (!run.has(record, flag.waiting) || run.has(record, flag.down)) since.delete(rank);
    else if (!since.has(rank)) {
      since.set(rank, record);
      began.add(record);
    }
  }
  return { since, began };
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
