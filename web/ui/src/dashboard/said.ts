import { words } from "../strings/dashboard";
import { forbidden } from "./api";

/** lackOf says why rows that were asked for are not there. */
export function lackOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return forbidden(error) ? words.hidden(message) : words.lacking(message);
}
