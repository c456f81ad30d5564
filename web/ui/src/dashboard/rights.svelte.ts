import { forbidden, Refused, right, unproven, type Class, type Verb } from "./api";

/** How often a right is asked for again while something shows it, in ms. */
const every = 5000;

export interface Wanted {
  verb: Verb;
  of?: Class | undefined;
  name?: string | undefined;
}

/**
 * watchRight follows whether this page may do something, for as long as the component that calls
 * it is there. Refused is why it may not. The server decides again when the call is made.
 */
export function watchRight(wanted: () => Wanted): { readonly refused: string | undefined } {
  const state = $state({ refused: undefined as string | undefined });
  $effect(() => {
    const { verb, of, name } = wanted();
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      try {
        if (document.visibilityState === "visible") {
          const { allowed, why } = await right(verb, of, name, ended.signal);
          state.refused = allowed ? undefined : why;
        }
      } catch (error) {
        if (ended.signal.aborted) return;
        if (unproven(error) || forbidden(error)) state.refused = error.message;
        // A server of an older release has no such call: it decides when the change is sent.
        if (error instanceof Refused && error.status === 404) return;
      }
      timer = setTimeout(() => void ask(), every);
    };
    void ask();
    return () => {
      clearTimeout(timer);
      ended.abort();
      state.refused = undefined;
    };
  });
  return state;
}
