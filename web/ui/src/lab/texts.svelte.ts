import type { Engine } from "../engine/client";
import type { Described, TraceRecord } from "../engine/protocol";
import type { Run } from "./run";

/** A description of one record. */
export interface Text {
  record: TraceRecord;
  sentence: string;
}

const block = 50;
const blocksKept = 400;
/** Fields that are bytes say nothing to a reader. */
const bytes = /="\\x.*?"(?=[ ,]|$)/g;

/**
 * Texts are the descriptions of records of one run. They are asked for in blocks when
 * something needs them, and version rises when they have come.
 */
export class Texts {
  version = $state(0);
  #blocks = new Map<number, Text[] | "asked">();
  #closed = false;

  constructor(
    readonly engine: Engine,
    readonly run: Run,
  ) {}

  /** get returns the description of a record if it is known. It asks for nothing. */
  get(record: number): Text | undefined {
    const texts = this.#blocks.get(Math.floor((record - 1) / block));
    return texts === "asked" ? undefined : texts?.[(record - 1) % block];
  }

  /** want asks for the descriptions of these records that are not known. */
  want(from: number, to: number): void {
    const last = Math.floor((Math.min(to, this.run.count) - 1) / block);
    for (let b = Math.floor((Math.max(from, 1) - 1) / block); b <= last; b++) {
      const known = this.#blocks.get(b);
      // A block at the end of a run that still grows is asked for again when it is longer.
      const expected = Math.min(block, this.run.count - b * block);
      if (known === "asked" || (known && known.length >= expected)) continue;
      this.#ask(b, expected).catch(() => this.#blocks.delete(b));
    }
  }

  async #ask(b: number, count: number): Promise<void> {
    this.#blocks.set(b, "asked");
    const from = b * block + 1;
    const { records, sentences } = await this.engine.call<Described>({ call: "describe", run: this.run.head.run, from, to: from + count - 1 });
    if (this.#closed) return;
    this.#blocks.set(
      b,
      records.map((record, i) => ({ record, sentence: sentences[i]?.replace(bytes, "=…") ?? "" })),
    );
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= blocksKept) break;
      this.#blocks.delete(oldest);
    }
    this.version++;
  }

  close(): void {
    this.#closed = true;
  }
}
