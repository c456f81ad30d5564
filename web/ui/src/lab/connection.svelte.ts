import { Engine, EngineError, type Connect } from "../engine/client";
import { native, wasm } from "../engine/hosts";
import type { Catalog, Hello, Problem } from "../engine/protocol";

const tokenKey = "conclave.engine";
/** An engine that fails so soon after it started is not started again. */
const shortLife = 3000;

/**
 * Connection keeps one engine for the page. An engine that ends after it has worked is
 * started again; renewed is called with each one.
 */
export class Connection {
  status: "connecting" | "ready" | "none" = $state("connecting");
  hello: Hello | undefined = $state.raw();
  catalog: Catalog | undefined = $state.raw();
  /** How much of the engine is loaded, in bytes. */
  loaded: { bytes: number; total: number } | undefined = $state.raw();
  /** Why the last engine ended, until it is dismissed. */
  failure: Problem | undefined = $state.raw();
  engine: Engine | undefined;
  readonly #token: string | undefined;
  #started = 0;

  /** Other is what answers in place of an engine, if something does. */
  constructor(
    readonly renewed: (engine: Engine, hello: Hello) => void,
    readonly other?: Connect,
  ) {
    this.#token = other ? undefined : takeToken();
    // A native engine has room for a few pages, so one that is left makes room. A page
    // that comes back from the browser's cache starts another engine.
    addEventListener("pagehide", () => this.engine?.close());
    addEventListener("pageshow", (event) => {
      if (event.persisted) this.start();
    });
  }

  get isNative(): boolean {
    return this.#token !== undefined;
  }

  start(): void {
    this.#started = Date.now();
    this.status = "connecting";
    const engine = new Engine(this.#connect((bytes, total) => (this.loaded = { bytes, total })), (problem) => this.#lost(engine, problem));
    this.engine = engine;
    this.#greet(engine).catch((error: unknown) => {
      if (error instanceof EngineError) this.#lost(engine, error.problem);
      else throw error;
    });
  }

  #connect(loading: (bytes: number, total: number) => void): Connect {
    if (this.other) return this.other;
    return this.#token === undefined ? wasm(loading) : native(this.#token);
  }

  /** another starts an engine of its own, which nothing starts again. Close ends it and what it does. */
  another(lost: (problem: Problem) => void): Engine {
    return new Engine(
      this.#connect(() => undefined),
      lost,
    );
  }

  async #greet(engine: Engine): Promise<void> {
    this.hello = await engine.hello();
    this.catalog ??= await engine.call<Catalog>({ call: "catalog" });
    this.status = "ready";
    this.loaded = undefined;
    this.renewed(engine, this.hello);
  }

  #lost(engine: Engine, problem: Problem): void {
    if (engine !== this.engine) return;
    engine.close();
    this.engine = undefined;
    this.failure = problem;
    if (this.status === "ready" && Date.now() - this.#started > shortLife) this.start();
    else this.status = "none";
  }
}

/**
 * takeToken returns the token of a native engine, and takes it out of the address so
 * that nobody shares it. It lasts as long as the tab.
 */
function takeToken(): string | undefined {
  const found = /[?&#]engine=([^&]+)/.exec(location.hash);
  try {
    if (found?.[1]) sessionStorage.setItem(tokenKey, found[1]);
  } catch {
    // Without storage the token lasts until the page is loaded again.
  }
  if (!found?.[1]) return storedToken();
  const rest = location.hash.replace(/([?&#])engine=[^&]+&?/, "$1").replace(/[?&]$/, "");
  history.replaceState(history.state, "", rest === "#" || rest === "" ? location.pathname + location.search : rest);
  return found[1];
}

function storedToken(): string | undefined {
  try {
    return sessionStorage.getItem(tokenKey) ?? undefined;
  } catch {
    return undefined;
  }
}
