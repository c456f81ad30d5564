import type { Connect, Link, Listener } from "./client";
import { FrameReader } from "./frames";
import type { Frame, Problem } from "./protocol";

const lost = (message: string): Problem => ({ code: "lost", message });

/** The policy by which scripts may be loaded, where the browser wants one. */
const policy = (
  globalThis as { trustedTypes?: { createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string } } }
).trustedTypes?.createPolicy("conclave", { createScriptURL: (url) => url });

/** The root of the site, where assets/ and engine/ are. The page is there, or in lab/ below it. */
export const root = (): URL => new URL(document.documentElement.dataset.face === "lab" ? "../" : "./", document.baseURI);

/**
 * wasm connects to an engine in a worker of this browser. Progress of loading is told
 * as long as the worker is not ready.
 */
export const wasm =
  (loading: (bytes: number, total: number) => void): Connect =>
  (listener) => {
    const url = new URL("engine/worker.js", root()).href;
    const worker = new Worker(policy?.createScriptURL(url) ?? url, { type: "module" });
    const waiting: object[] = [];
    let ready = false;
    worker.onmessage = (event: MessageEvent<Partial<Frame> & { ready?: boolean; failed?: string; loaded?: number; total?: number }>) => {
      const { header, body, failed } = event.data;
      if (header) listener.frame({ header, body: body ?? null });
      else if (failed !== undefined) listener.failed(lost(failed));
      else if (event.data.loaded !== undefined) loading(event.data.loaded, event.data.total ?? 0);
      else if (event.data.ready) {
        ready = true;
        for (const request of waiting.splice(0)) worker.postMessage(request);
      }
    };
    worker.onerror = (event) => {
      event.preventDefault();
      listener.failed(lost(event.message || "no engine"));
    };
    return {
      send: (request) => void (ready ? worker.postMessage(request) : waiting.push(request)),
      close: () => worker.terminate(),
    };
  };

/** native connects to the engine of "conclave lab" on this machine. */
export const native =
  (token: string): Connect =>
  (listener) =>
    new NativeLink(token, listener);

class NativeLink implements Link {
  readonly #url: URL;
  readonly #stop = new AbortController();
  readonly #headers: Record<string, string>;
  readonly #listener: Listener;

  constructor(token: string, listener: Listener) {
    this.#url = new URL("call", document.baseURI);
    this.#url.searchParams.set("worker", crypto.randomUUID().slice(0, 32).replace(/-$/, ""));
    this.#headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    this.#listener = listener;
  }

  send(request: object): void {
    this.#ask(request).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.#listener.failed(lost(error instanceof Error ? error.message : String(error)));
    });
  }

  async #ask(request: object): Promise<void> {
    const response = await fetch(this.#url, {
      method: "POST",
      headers: this.#headers,
      body: JSON.stringify(request),
      signal: this.#stop.signal,
    });
    if (!response.ok || !response.body) throw new Error(`${response.status} ${(await response.text()).trim()}`);
    const frames = new FrameReader();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      for (const frame of frames.push(value)) this.#listener.frame(frame);
    }
    if (frames.rest > 0) throw new Error("an answer was cut off");
  }

  close(): void {
    this.#stop.abort();
    void fetch(this.#url, { method: "DELETE", headers: this.#headers, keepalive: true }).catch(() => undefined);
  }
}
