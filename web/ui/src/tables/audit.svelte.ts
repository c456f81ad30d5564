import type { Connection } from "../lab/connection.svelte";
import type { Audited } from "../engine/protocol";
import { Crew } from "./crew";

/** What is known of one cell. */
export type Cell = { state: "searching" } | { state: "done"; found: Audited } | { state: "failed"; message: string };

/** The numbers of states that a search may have. */
export const amounts = [2_000, 20_000, 200_000, 2_000_000] as const;

/** Wanted names a cell. */
export interface Wanted {
  algorithm: string;
  assumption: string;
}

/** Table is all cells that were searched since the page was opened. */
class Table {
  #cells: Record<string, Cell> = $state({});
  progress: { done: number; of: number } | undefined = $state.raw();
  stopped = $state(false);
  #crew: Crew | undefined = $state.raw();

  get searching(): boolean {
    return this.#crew !== undefined;
  }

  cell(wanted: Wanted, states: number): Cell | undefined {
    return this.#cells[keyOf(wanted, states)];
  }

  /** search searches those cells that are not known yet. What was under way ends. */
  async search(connection: Connection, cells: readonly Wanted[], states: number): Promise<void> {
    this.stop();
    this.stopped = false;
    const open = cells.filter((wanted) => this.cell(wanted, states)?.state !== "done");
    const crew = new Crew(connection);
    this.#crew = crew;
    this.progress = { done: cells.length - open.length, of: cells.length };
    const put = (wanted: Wanted, cell: Cell) => {
      this.#cells[keyOf(wanted, states)] = cell;
      if (cell.state !== "searching" && this.progress) this.progress = { ...this.progress, done: this.progress.done + 1 };
    };
    await crew.run(
      open.map((wanted) => ({
        request: { call: "audit", audit: { ...wanted, states } },
        began: () => put(wanted, { state: "searching" }),
        done: (answer) => put(wanted, { state: "done", found: answer as Audited }),
        failed: (message) => put(wanted, { state: "failed", message }),
      })),
    );
    if (this.#crew === crew) this.#crew = undefined;
  }

  /** stop ends all searches at once. What was found stays. */
  stop(): void {
    if (!this.#crew) return;
    this.#crew.close();
    this.#crew = undefined;
    this.stopped = true;
    for (const [key, cell] of Object.entries(this.#cells)) if (cell.state === "searching") delete this.#cells[key];
  }
}

const keyOf = ({ algorithm, assumption }: Wanted, states: number): string => `${algorithm}\n${assumption}\n${states}`;

/** The table outlives its screen: whoever opens a run and comes back finds it as it was. */
export const table = new Table();
