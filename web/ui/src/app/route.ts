/** A face is one of the two halves of the page. */
export type Face = "lab" | "dashboard";

/**
 * faceOf tells which face a fragment belongs to. Those of the lab begin with the
 * version of its codec, "#1/…"; all others are the dashboard's.
 */
export const faceOf = (hash: string): Face => (/^#\d+\//.test(hash) ? "lab" : "dashboard");

/** The fragment with which the lab opens. */
export const labHome = "#1/gallery";
