/** The panels of a run that share one place. */
export type Tab = "states" | "rules" | "flight" | "history" | "source";
