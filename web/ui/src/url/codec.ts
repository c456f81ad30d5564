import { PackError, pack, unpack } from "./pack";

/** The version of the codec, the first part of every fragment of the lab. */
export const version = 1;

/** What runs: a scenario of the catalog, or one whose text the URL holds. */
export type Source = { id: string } | { text: string };

/** Pick is what is selected besides the record at the cursor. */
export type Pick = { process: number } | { message: { sender: number; to: number } };

/** View is how the diagram is shown. */
export interface View {
  axis: "real" | "logical";
  embed: boolean;
}

/** Place is everything of the lab that a URL keeps. */
export type Place =
  | { page: "gallery"; others: Others }
  /** The list of lessons, or a step of one, from 1. */
  | { page: "learn"; lesson: string; step: number; others: Others }
  /** Two scenarios of the catalog side by side. */
  | { page: "compare"; ids: readonly [string, string]; others: Others }
  /** A search; what it asks for stands in others, as the screen reads it. */
  | { page: "check"; algorithm: string; others: Others }
  /** Tables and charts of many algorithms; what is chosen stands in others. */
  | { page: "audit" | "charts"; others: Others }
  | {
      page: "run";
      source: Source;
      /** How many records have happened. */
      cursor: number;
      pick?: Pick;
      view: View;
      /** 48 bits of the hash of the journal up to the cursor, in hexadecimal. */
      hash?: string;
      others: Others;
    };

/** Parameters that this version does not know. They are kept. */
export type Others = readonly (readonly [string, string])[];

export type Decoded =
  | { place: Place; problem?: undefined }
  /** What could be read, and why it is not more. */
  | { place?: Place; problem: "newer" | "damaged" | "unknown"; detail: string; partial: string };

export const plainView: View = { axis: "real", embed: false };

/** encode returns the fragment of a place, with the leading "#". */
export async function encode(place: Place): Promise<string> {
  const params: [string, string][] = [];
  let path = `${version}/gallery`;
  if (place.page === "learn") path = `${version}/learn` + (place.lesson ? `/${encodeURIComponent(place.lesson)}/${place.step}` : "");
  if (place.page === "compare") path = `${version}/compare/${place.ids.map(encodeURIComponent).join("/")}`;
  if (place.page === "check") path = `${version}/check/${encodeURIComponent(place.algorithm)}`;
  if (place.page === "audit" || place.page === "charts") path = `${version}/${place.page}`;
  if (place.page === "run") {
    path = `${version}/run/` + (await encodeSource(place.source));
    if (place.cursor > 0) params.push(["t", String(place.cursor)]);
    if (place.pick) params.push(encodePick(place.pick));
    if (place.view.axis !== "real") params.push(["a", place.view.axis]);
    if (place.view.embed) params.push(["embed", "1"]);
    if (place.hash) params.push(["h", place.hash]);
  }
  for (const [name, value] of place.others) params.push([name, value]);
  const query = params.map(([name, value]) => `${encodeURIComponent(name)}=${encodeValue(value)}`).join("&");
  return `#${path}${query ? "?" + query : ""}`;
}

/** A ">" and a ":" read better as they are, and a fragment may hold them. */
const encodeValue = (value: string): string => encodeURIComponent(value).replaceAll("%3E", ">").replaceAll("%3A", ":");

async function encodeSource(source: Source): Promise<string> {
  if ("text" in source) return "~" + (await pack(source.text));
  return source.id.split("/").map(encodeURIComponent).join("/");
}

const encodePick = (pick: Pick): [string, string] =>
  "process" in pick ? ["p", String(pick.process)] : ["m", `${pick.message.sender}>${pick.message.to}`];

/** decode reads a fragment. It never throws: a damaged one is told as a problem. */
export async function decode(fragment: string): Promise<Decoded> {
  const body = fragment.replace(/^#/, "");
  if (body === "") return { place: { page: "gallery", others: [] } };
  const [path = "", query = ""] = splitOnce(body, "?");
  const [made = "", rest = ""] = splitOnce(path, "/");
  if (!/^\d{1,4}$/.test(made)) return { problem: "damaged", detail: made, partial: "" };
  const params = readParams(query);
  if (Number(made) !== version) {
    const problem = Number(made) > version ? "newer" : "damaged";
    return { problem, detail: made, partial: rest };
  }
  const [page = "", name = ""] = splitOnce(rest, "/");
  if ((page === "audit" || page === "charts") && name === "") return { place: { page, others: params } };
  if (page === "gallery" && name === "") return { place: { page, others: params } };
  if (page === "learn") {
    const [lesson = "", step = ""] = splitOnce(name, "/");
    return { place: { page, lesson: unescaped(lesson), step: /^[1-9]\d?$/.test(step) ? Number(step) : 1, others: params } };
  }
  if (page === "compare") {
    const [a = "", b = ""] = splitOnce(name, "/").map(unescaped);
    if (a !== "" && b !== "") return { place: { page, ids: [a, b], others: params } };
  }
  if (page === "check") return { place: { page, algorithm: unescaped(name), others: params } };
  if (page === "run" && name !== "") return decodeRun(name, params);
  return { problem: "unknown", detail: page, partial: "" };
}

async function decodeRun(name: string, params: Others): Promise<Decoded> {
  const place = readRun(params);
  if (!name.startsWith("~")) {
    return { place: { ...place, source: { id: name.split("/").map(unescaped).join("/") } } };
  }
  try {
    return { place: { ...place, source: { text: await unpack(name.slice(1)) } } };
  } catch (error) {
    if (!(error instanceof PackError)) throw error;
    return { problem: "damaged", detail: error.message, partial: error.partial };
  }
}

function readRun(params: Others) {
  const others: [string, string][] = [];
  const place: Extract<Place, { page: "run" }> = {
    page: "run",
    source: { id: "" },
    cursor: 0,
    view: { ...plainView },
    others,
  };
  for (const [name, value] of params) {
    // The token of the engine is a secret of the command line: it is in no address that is shared.
    if (!readParam(place, name, value) && name !== "engine") others.push([name, value]);
  }
  return place;
}

/** readParam reports whether it knows a parameter and its value. */
function readParam(place: Extract<Place, { page: "run" }>, name: string, value: string): boolean {
  switch (name) {
    case "t":
      if (!/^\d{1,9}$/.test(value)) return false;
      place.cursor = Number(value);
      return true;
    case "p":
      if (!/^\d{1,9}$/.test(value)) return false;
      place.pick = { process: Number(value) };
      return true;
    case "m": {
      const parts = /^(\d{1,9})>(\d{1,9})$/.exec(value);
      if (!parts) return false;
      place.pick = { message: { sender: Number(parts[1]), to: Number(parts[2]) } };
      return true;
    }
    case "a":
      if (value !== "real" && value !== "logical") return false;
      place.view.axis = value;
      return true;
    case "embed":
      if (value !== "1") return false;
      place.view.embed = true;
      return true;
    case "h":
      if (!/^[0-9a-f]{12}$/.test(value)) return false;
      place.hash = value;
      return true;
  }
  return false;
}

function readParams(query: string): Others {
  if (query === "") return [];
  return query.split("&").map((pair) => {
    const [name = "", value = ""] = splitOnce(pair, "=");
    return [unescaped(name), unescaped(value)] as const;
  });
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + mark.length)];
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
