import { flag } from "../engine/protocol";
import type { Run } from "./run";

/** Counters are what has happened up to a record. */
export interface Counters {
  sent: number; // messages of the algorithm itself
  entries: number;
  waiting: number;
  inside: number;
}

export function countersAt(run: Run, at: number): Counters {
  const counters = { sent: 0, entries: 0, waiting: 0, inside: 0 };
  for (let f = 0; f < run.flights; f++) {
    const sender = run.sender[f] ?? 0;
    const made = ((run.fate[f] ?? 0) & 0x80) !== 0;
    if (sender === 0 || sender > at || made) continue;
    if (run.head.messages[(run.flightType[f] ?? 0) - 1]?.class === "protocol") counters.sent++;
  }
  const state = new Uint16Array(run.labels.length);
  for (let record = 1; record <= at; record++) {
    if (run.has(record, flag.network)) continue;
    if (run.has(record, flag.granted)) counters.entries++;
    state[run.process[record - 1] ?? 0] = run.flags[record - 1] ?? 0;
  }
  for (const flags of state) {
    if (flags & flag.inside) counters.inside++;
    else if (flags & flag.waiting) counters.waiting++;
  }
  return counters;
}

/** Kinds of records that a fault makes. */
export const faults: ReadonlySet<string> = new Set(["crash", "drop", "duplicate", "pause", "jump", "corrupt", "partition"]);
