import type { Class } from "./api";
import { orders, type Order } from "./names";

export const tabs = ["cluster", "locks", "elections", "sessions", "namespaces"] as const;
export type Tab = (typeof tabs)[number];

/** What the dashboard shows; all of it is in the fragment, so that it can be sent to others. */
export interface Place {
  tab: Tab;
  prefix: string;
  sort: Order;
  /** The name that is explained, or the prefix of the namespace. */
  name: string | undefined;
}

/** placeOf reads a fragment. What it does not know it leaves out. */
export function placeOf(hash: string): Place {
  const [tab, query] = split(hash.replace(/^#/, ""));
  const parameters = new URLSearchParams(query);
  const sort = parameters.get("sort") as Order;
  return {
    tab: tabs.find((known) => known === tab) ?? "cluster",
    prefix: parameters.get("prefix") ?? "",
    sort: orders.includes(sort) ? sort : "queue",
    name: parameters.get("name") ?? undefined,
  };
}

/** hashOf writes the fragment of a place. */
export function hashOf(place: Partial<Place> & { tab: Tab }): string {
  const parameters = new URLSearchParams();
  if (place.prefix) parameters.set("prefix", place.prefix);
  if (place.sort && place.sort !== "queue") parameters.set("sort", place.sort);
  if (place.name !== undefined) parameters.set("name", place.name);
  const query = parameters.toString();
  return `#${place.tab}${query && `?${query}`}`;
}

/** classOf returns the class of names that a tab lists. */
export const classOf = (tab: Tab): Class | undefined => (tab === "locks" || tab === "elections" ? tab : undefined);

function split(text: string): [string, string] {
  const at = text.indexOf("?");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
