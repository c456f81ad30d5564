import type { Connection } from "../lab/connection.svelte";
import type { Figure } from "../engine/protocol";
import { Crew } from "./crew";

/** Sweep has the figures that were measured since the page was opened. */
class Sweep {
  #known: Record<string, Figure[]> = $state.raw({});
  failures: { algorithm: string; n: number; message: string }[] = $state.raw([]);
  progress: { done: number; of: number } | undefined = $state.raw();
  stopped = $state(false);
  #crew: Crew | undefined = $state.raw();

  get measuring(): boolean {
    return this.#crew !== undefined;
  }

  /** figures are those of some algorithms and sizes, as far as they are measured. */
  figures(algorithms: readonly string[], sizes: readonly number[]): Figure[] {
    return algorithms.flatMap((algorithm) => sizes.flatMap((n) => this.#known[`${algorithm} ${n}`] ?? []));
  }

  /** measure measures what is not known, small sizes first. What was under way ends. */
  async measure(connection: Connection, algorithms: readonly string[], sizes: readonly number[]): Promise<void> {
    this.stop();
    this.stopped = false;
    this.failures = [];
    const all = [...sizes].sort((a, b) => a - b).flatMap((n) => algorithms.map((algorithm) => ({ algorithm, n })));
    const open = all.filter(({ algorithm, n }) => !this.#known[`${algorithm} ${n}`]);
    const crew = new Crew(connection);
    this.#crew = crew;
    this.progress = { done: all.length - open.length, of: all.length };
    const step = () => {
      if (this.progress) this.progress = { ...this.progress, done: this.progress.done + 1 };
    };
    await crew.run(
      open.map(({ algorithm, n }) => ({
        request: { call: "measure", measure: { algorithm, n } },
        done: (answer) => {
          this.#known = { ...this.#known, [`${algorithm} ${n}`]: (answer as { rows: Figure[] }).rows };
          step();
        },
        failed: (message) => {
          this.failures = [...this.failures, { algorithm, n, message }];
          step();
        },
      })),
    );
    if (this.#crew === crew) this.#crew = undefined;
  }

  /** stop ends all measurements at once. What was measured stays. */
  stop(): void {
    if (!this.#crew) return;
    this.#crew.close();
    this.#crew = undefined;
    this.stopped = true;
  }
}

/** The figures outlive their screen. */
export const sweep = new Sweep();
