import { EngineError } from "../engine/client";
import type { Choice, Turns } from "../engine/protocol";
import type { Lab } from "./lab.svelte";
import type { Run } from "./run";

/** Choosing is somebody who chooses what happens next at the cursor of a run. */
export class Choosing {
  on = $state(false);
  #turns: { run: Run; turns: Turns } | undefined = $state.raw();
  #asking = false;

  constructor(readonly lab: Lab) {}

  /** What could happen at the cursor, once it is known. */
  get turns(): Turns | undefined {
    const known = this.#turns;
    return this.on && known && known.run === this.lab.run && known.turns.at === this.lab.cursor && this.#answers ? known.turns : undefined;
  }

  /** Whether the engine of the run is there: one that has ended is started again, with a new run. */
  get #answers(): boolean {
    const { texts, connection } = this.lab;
    return connection.status === "ready" && texts !== undefined && texts.engine === connection.engine;
  }

  toggle(): void {
    this.on = !this.on && (this.lab.connection.hello?.calls.includes("turns") ?? true);
    void this.refresh();
  }

  /** take lets a turn happen. What follows in the run now stays as a branch. */
  async take(turn: string): Promise<void> {
    const { turns, lab } = this;
    if (!turns) return;
    const goesOn = turns.held && turns.left === 0 && lab.cursor === lab.count;
    await lab.act({ do: "turn", turn }, { toEnd: true, goesOn });
  }

  /** pick takes a turn that can be taken, and says why another cannot. */
  async pick(choice: Choice): Promise<void> {
    if (choice.why) this.lab.notice = choice.why;
    else await this.take(choice.turn);
  }

  /** rest lets everything happen by itself again. */
  async rest(): Promise<void> {
    if (!this.turns?.held) return;
    this.on = false;
    await this.lab.act({ do: "rest" });
  }

  /** refresh asks what could happen at the cursor. Of several questions only the last counts. */
  async refresh(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    try {
      for (;;) {
        const { run, cursor: at, texts, opening } = this.lab;
        if (!this.on || !run || !texts || opening || !this.#answers || this.turns) return;
        const turns = await texts.engine.call<Turns>({ call: "turns", run: run.head.run, at });
        this.#turns = { run, turns };
      }
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
    } finally {
      this.#asking = false;
    }
  }
}
