import { flag } from "../engine/protocol";
import type { Run } from "./run";

/**
 * past returns the records that happened before a record, and the record itself: at
 * each process all up to one of them, so the last index at each process says it all.
 */
export function past(run: Run, record: number): Set<number> {
  const found = new Set<number>();
  const before = predecessors(run);
  const open = [record];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (at < 1 || found.has(at)) continue;
    found.add(at);
    open.push(before.atProcess[at - 1] ?? 0, run.cause[at - 1] ?? 0);
  }
  return found;
}

/** future returns the records that a record led to, and the record itself. */
export function future(run: Run, record: number): Set<number> {
  const found = new Set([record]);
  const before = predecessors(run);
  for (let at = record + 1; at <= run.count; at++) {
    if (found.has(before.atProcess[at - 1] ?? 0) || found.has(run.cause[at - 1] ?? 0)) found.add(at);
  }
  return found;
}

/** predecessors finds for each record the one before it at its process. */
function predecessors(run: Run): { atProcess: Uint32Array } {
  const atProcess = new Uint32Array(run.count);
  const last = new Uint32Array(run.labels.length);
  for (let record = 1; record <= run.count; record++) {
    // Losses and partitions are at no process: nobody there knows of them.
    if (run.has(record, flag.network)) continue;
    const rank = run.process[record - 1] ?? 0;
    atProcess[record - 1] = last[rank] ?? 0;
    last[rank] = record;
  }
  return { atProcess };
}
