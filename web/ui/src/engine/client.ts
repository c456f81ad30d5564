import { protocol, type Frame, type Hello, type Problem, type Request } from "./protocol";

/** EngineError is a request that failed. */
export class EngineError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

/** A Link carries requests to one engine, and its frames back. */
export interface Link {
  send(request: Request & { id: number }): void;
  close(): void;
}

/** What a link tells. After failed it is of no use. */
export interface Listener {
  frame(frame: Frame): void;
  failed(problem: Problem): void;
}

export type Connect = (listener: Listener) => Link;

interface Pending {
  resolve(frame: Frame): void;
  reject(error: EngineError): void;
  partial: ((frame: Frame) => void) | undefined;
}

/**
 * Engine answers requests over a link. When the link fails, all requests fail with
 * the code "lost", and lost is called once.
 */
export class Engine {
  #link: Link;
  #pending = new Map<number, Pending>();
  #last = 0;
  #failure: Problem | undefined;

  constructor(
    connect: Connect,
    readonly lost: (problem: Problem) => void,
  ) {
    this.#link = connect({ frame: (frame) => this.#accept(frame), failed: (problem) => this.#fail(problem) });
  }

  /** hello fails if the engine speaks another version of the protocol. */
  async hello(): Promise<Hello> {
    const hello = await this.call<Hello>({ call: "hello" });
    if (hello.protocol !== protocol) {
      const message = `the page speaks protocol ${protocol} and the engine protocol ${hello.protocol}; reload the page`;
      throw new EngineError({ code: "lost", message });
    }
    return hello;
  }

  /** call returns the header of the result. Partial gets the frames before it. */
  async call<T>(request: Request, partial?: (frame: Frame) => void): Promise<T> {
    return (await this.frame(request, partial)).header as unknown as T;
  }

  /** frame returns the result with its body. */
  frame(request: Request, partial?: (frame: Frame) => void): Promise<Frame> {
    return this.start(request, partial).answer;
  }

  /** start returns the number of the request too, with which it can be cancelled. */
  start(request: Request, partial?: (frame: Frame) => void): { id: number; answer: Promise<Frame> } {
    const id = ++this.#last;
    const answer = new Promise<Frame>((resolve, reject) => {
      if (this.#failure) {
        reject(new EngineError(this.#failure));
        return;
      }
      this.#pending.set(id, { resolve, reject, partial });
      this.#link.send({ ...request, id });
    });
    return { id, answer };
  }

  close(): void {
    this.#failure ??= { code: "lost", message: "closed" };
    this.#link.close();
    this.#rejectAll(this.#failure);
  }

  #accept(frame: Frame): void {
    const pending = this.#pending.get(frame.header.id);
    if (!pending) return;
    switch (frame.header.type) {
      case "result":
        this.#pending.delete(frame.header.id);
        pending.resolve(frame);
        return;
      case "error":
        this.#pending.delete(frame.header.id);
        pending.reject(new EngineError(frame.header as unknown as Problem));
        return;
      default:
        pending.partial?.(frame);
    }
  }

  #fail(problem: Problem): void {
    if (this.#failure) return;
    this.#failure = problem;
    this.#link.close();
    this.#rejectAll(problem);
    this.lost(problem);
  }

  #rejectAll(problem: Problem): void {
    for (const pending of this.#pending.values()) pending.reject(new EngineError(problem));
    this.#pending.clear();
  }
}
