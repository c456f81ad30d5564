import { flag } from "../engine/protocol";
import type { Run } from "./run";

/**
 * Cut is how far each process is inside, by rank: the last of its records, or 0. A
 * record of the network is at no process, and in no cut.
 */
export type Cut = readonly number[];

/** Crossing is a record inside a cut whose cause is outside. */
export interface Crossing {
  record: number;
  cause: number;
}

/** recordsOf lists the records of each process, by rank. */
export function recordsOf(run: Run): number[][] {
  const all: number[][] = run.labels.map(() => []);
  for (let record = 1; record <= run.count; record++) if (!run.has(record, flag.network)) all[run.process[record - 1] ?? 0]?.push(record);
  return all;
}

/** cutAt is the cut of all that has happened up to a record. It is consistent. */
export const cutAt = (all: readonly number[][], cursor: number): Cut => all.map((records) => records.findLast((record) => record <= cursor) ?? 0);

const inside = (run: Run, cut: Cut, record: number): boolean => record <= (cut[run.process[record - 1] ?? 0] ?? 0);

/** causeOf is the record at a process that led to another, or 0. */
function causeOf(run: Run, record: number): number {
  const cause = run.cause[record - 1] ?? 0;
  return cause > 0 && !run.has(cause, flag.network) ? cause : 0;
}

/** crossings finds what makes a cut inconsistent: none if it is consistent. */
export function crossings(run: Run, all: readonly number[][], cut: Cut): Crossing[] {
  const found: Crossing[] = [];
  for (const [rank, records] of all.entries()) {
    for (const record of records) {
      if (record > (cut[rank] ?? 0)) break;
      const cause = causeOf(run, record);
      if (cause > 0 && !inside(run, cut, cause)) found.push({ record, cause });
    }
  }
  return found.sort((a, b) => a.record - b.record);
}

/** onTheWay lists the flights that were sent inside a cut and have not arrived inside. */
export function onTheWay(run: Run, cut: Cut): number[] {
  const found: number[] = [];
  for (let flight = 0; flight < run.flights; flight++) {
    const sender = run.sender[flight] ?? 0;
    const end = run.end[flight] ?? 0;
    if (sender === 0 || !inside(run, cut, sender)) continue;
    const lost = end > 0 && run.kindOf(end) !== "deliver";
    if (!lost && (end === 0 || !inside(run, cut, end))) found.push(flight);
  }
  return found;
}

/** shrunk is the largest consistent cut within a cut. */
export function shrunk(run: Run, all: readonly number[][], cut: Cut): Cut {
  let now = [...cut];
  for (let found = crossings(run, all, now); found.length > 0; found = crossings(run, all, now)) {
    for (const { record } of found) {
      const rank = run.process[record - 1] ?? 0;
      const before = all[rank]?.findLast((other) => other < record) ?? 0;
      now[rank] = Math.min(now[rank] ?? 0, before);
    }
  }
  return now;
}

/** grown is the smallest consistent cut around a cut. */
export function grown(run: Run, all: readonly number[][], cut: Cut): Cut {
  let now = [...cut];
  for (let found = crossings(run, all, now); found.length > 0; found = crossings(run, all, now)) {
    for (const { cause } of found) {
      const rank = run.process[cause - 1] ?? 0;
      now[rank] = Math.max(now[rank] ?? 0, cause);
    }
  }
  return now;
}

/** nearest is the consistent cut that differs in the fewest records, of the largest within and the smallest around. */
export function nearest(run: Run, all: readonly number[][], cut: Cut): Cut {
  const [less, more] = [shrunk(run, all, cut), grown(run, all, cut)];
  const size = (of: Cut): number => all.reduce((sum, records, rank) => sum + records.filter((record) => record <= (of[rank] ?? 0)).length, 0);
  return size(cut) - size(less) <= size(more) - size(cut) ? less : more;
}
