import type { Run } from "./run";

/**
 * delayed returns how much later, in nanoseconds, a message arrives if it is to arrive at a
 * time, in half steps of D. It arrives after it was sent.
 */
export function delayed(run: Run, flight: number, to: number): number {
  const half = run.head.d / 2;
  const arrival = run.time[(run.end[flight] ?? 0) - 1] ?? 0;
  const sent = run.time[(run.sender[flight] ?? 0) - 1] ?? 0;
  const least = -Math.max(0, Math.ceil((arrival - sent) / half) - 1);
  return Math.max(least, Math.round((to - arrival) / half)) * half || 0;
}
