import { headersOf, Refused, refusal, url } from "./api";
import { SentEvents } from "./sse";

/** How long nothing may come before what is shown counts as old, in ms. */
export const staleAfter = 2000;

/** How long nothing may come before the stream is opened anew, in ms. */
const silentAfter = 6000;

/** The first and the longest pause before the stream is opened again, in ms. */
const firstPause = 250;
const longestPause = 10_000;

export interface Listener {
  event(kind: string, data: unknown): void;
  /** open is told when an answer begins, and closed why the stream ended or could not begin. */
  open(): void;
  closed(why: Error): void;
}

export interface Stream {
  close(): void;
  /** retry opens the stream at once if it is between two attempts. */
  retry(): void;
}

/**
 * pauseAfter returns how long to wait after so many failures in a row: twice as long
 * each time, and half of that is chance, so that many pages do not come back at once.
 */
export const pauseAfter = (failures: number, chance = Math.random()): number =>
  Math.min(firstPause * 2 ** Math.min(failures, 16), longestPause) * (0.5 + 0.5 * chance);

/** watch keeps one stream open until it is closed. */
export function watch(parameters: Record<string, string | undefined>, listener: Listener): Stream {
  const ended = new AbortController();
  let failures = 0;
  let wake: (() => void) | undefined;
  const sleep = (ms: number) =>
    new Promise<void>((done) => {
      const timer = setTimeout(done, ms);
      wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  const run = async () => {
    while (!ended.signal.aborted) {
      try {
        await once(parameters, ended.signal, {
          ...listener,
          open: () => {
            failures = 0;
            listener.open();
          },
        });
      } catch (failed) {
        if (ended.signal.aborted) return;
        listener.closed(failed instanceof Error ? failed : new Error(String(failed)));
      }
      await sleep(pauseAfter(failures++));
    }
  };
  void run();
  return {
    close: () => {
      ended.abort();
      wake?.();
    },
    retry: () => wake?.(),
  };
}

/** once reads one stream to its end, and fails with why it ended. */
async function once(parameters: Record<string, string | undefined>, ended: AbortSignal, listener: Listener): Promise<never> {
  const silence = new AbortController();
  const signal = AbortSignal.any([ended, silence.signal]);
  const alarm = () => setTimeout(() => silence.abort(new Error(`nothing came for ${silentAfter / 1000} s`)), silentAfter);
  let timer = alarm();
  try {
    const response = await fetch(url("v1/watch", parameters), { signal, headers: headersOf("text/event-stream"), cache: "no-store" });
    if (!response.ok || !response.body) throw await refusal(response);
    listener.open();
    const parser = new SentEvents();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      clearTimeout(timer);
      timer = alarm();
      if (done) throw new Error("the server closed the stream");
      for (const { kind, data } of parser.push(value)) {
        const content = JSON.parse(data) as { code?: string; message?: string };
        if (kind === "end") throw new Refused(0, content.code ?? "", content.message ?? "");
        listener.event(kind, content);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}
