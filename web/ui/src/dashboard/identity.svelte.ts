import { show, whoAmI } from "./api";
import type { WhoAmI } from "./forms";

/** Identity is who this page is to the servers. */
class Identity {
  /** What the server said last, or undefined if it said nothing. */
  who: WhoAmI | undefined = $state.raw();
  /** How often the page has become somebody else. What was shown to the one before is dropped. */
  changes = $state(0);
  /** Whether the page shows a token. The token itself is in no place that outlives the page. */
  hasToken = $state(false);

  /** learn asks the server who this page is. */
  async learn(signal: AbortSignal): Promise<void> {
    this.who = await whoAmI(signal);
  }

  /** prove shows a token from now on. If the server refuses it, everything stays as it was. */
  async prove(token: string, signal: AbortSignal): Promise<void> {
    this.#become(await whoAmI(signal, token), token);
  }

  /** forget shows no token any more. */
  forget(): void {
    this.#become(undefined, "");
  }

  #become(who: WhoAmI | undefined, token: string): void {
    show(token);
    this.who = who;
    this.hasToken = token !== "";
    this.changes++;
  }
}

export const identity = new Identity();
