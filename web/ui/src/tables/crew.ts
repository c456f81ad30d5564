import type { Connection } from "../lab/connection.svelte";
import { EngineError, type Engine } from "../engine/client";
import type { Request } from "../engine/protocol";

/** How many engines work at a time at most: one processor is left to the page. */
const most = 4;

/** A task is one request, and what is done with its answer. */
export interface Task {
  request: Request;
  /** Called when an engine begins with it. */
  began?: () => void;
  done: (answer: unknown) => void;
  failed: (message: string) => void;
}

/** Crew has engines of its own work through tasks. Close ends all of them at once. */
export class Crew {
  readonly #connection: Connection;
  readonly #engines = new Set<Engine>();
  #closed = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** run returns when all tasks are done, or the crew is closed. */
  async run(tasks: readonly Task[]): Promise<void> {
    const queue = [...tasks];
    const cores = this.#connection.hello?.host === "native" ? this.#connection.hello.cores : navigator.hardwareConcurrency;
    const small = matchMedia("(pointer: coarse)").matches;
    const engines = small ? 1 : Math.max(1, Math.min(most, cores - 1, queue.length));
    await Promise.all(Array.from({ length: engines }, () => this.#work(queue)));
  }

  close(): void {
    this.#closed = true;
    for (const engine of this.#engines) engine.close();
    this.#engines.clear();
  }

  /** work takes tasks until none is left. An engine that ends, as when its memory does, fails its task alone. */
  async #work(queue: Task[]): Promise<void> {
    let engine: Engine | undefined;
    for (let task = queue.shift(); task && !this.#closed; task = queue.shift()) {
      try {
        engine ??= await this.#start();
        if (this.#closed) break;
        task.began?.();
        const answer = await engine.call(task.request);
        if (!this.#closed) task.done(answer);
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        if (this.#closed) break;
        task.failed(error.problem.message);
        if (error.problem.code === "lost" && engine) {
          this.#engines.delete(engine);
          engine = undefined;
        }
      }
    }
    if (engine) {
      this.#engines.delete(engine);
      engine.close();
    }
  }

  async #start(): Promise<Engine> {
    const engine = this.#connection.another(() => undefined);
    this.#engines.add(engine);
    await engine.hello();
    return engine;
  }
}
