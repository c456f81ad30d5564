import { sketch, type Sketch } from "../draw/sketch";
import { EngineError } from "../engine/client";
import type { RunHead, Scenario } from "../engine/protocol";
import type { Connection } from "./connection.svelte";
import { Run } from "./run";

/** How many records of a run a small picture has. */
export const mostSketched = 400;

/** Thumbs has the engine run the scenarios that are in view, one after the other, and keeps the pictures. */
export class Thumbs {
  #made = new Map<string, Sketch>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(readonly connection: Connection) {}

  get(id: string): Sketch | undefined {
    return this.#made.get(id);
  }

  /** want makes the picture of a scenario, unless it has gone out of view before its turn. */
  want(s: Scenario, gone: AbortSignal): Promise<Sketch | undefined> {
    const made = this.#last.then(() => (gone.aborted ? undefined : (this.#made.get(s.id) ?? this.#make(s))));
    this.#last = made.catch(() => undefined); // a scenario that does not run says so when it is opened
    return made;
  }

  async #make(s: Scenario): Promise<Sketch | undefined> {
    const { engine, hello } = this.connection;
    if (!engine || !hello) return undefined;
    let run: Run | undefined;
    try {
      await engine.call({ call: "open", text: s.text, name: `${s.id}.yaml`, records: mostSketched }, (frame) => {
        if (frame.header.type === "run") run = new Run(frame.header as unknown as RunHead, hello.kinds);
        if (frame.header.type === "chunk") run?.append(frame);
      });
    } catch (error) {
      if (error instanceof EngineError) return undefined;
      throw error;
    } finally {
      if (run) void engine.call({ call: "close", run: run.head.run }).catch(() => undefined);
    }
    const picture = run && sketch(run);
    if (picture) this.#made.set(s.id, picture);
    return picture;
  }
}
