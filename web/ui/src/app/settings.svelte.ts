import type { Theme } from "../tokens/tokens";

/** What a user chooses for this browser. It is kept in local storage. */
export interface Settings {
  theme: Theme | "system";
  /** Single-key shortcuts can be turned off (WCAG 2.1.4). */
  shortcuts: boolean;
}

const key = "conclave.settings";
const defaults: Settings = { theme: "system", shortcuts: true };

/** readSettings returns the defaults where nothing valid is stored. */
export function readSettings(): Settings {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? "{}");
    return { ...defaults, ...(stored as Partial<Settings>) };
  } catch {
    return { ...defaults };
  }
}

/** settings is shared by both faces; change it with saveSettings. */
export const settings: Settings = $state(readSettings());

export function saveSettings(change: Partial<Settings>): void {
  Object.assign(settings, change);
  applyTheme(settings.theme);
  try {
    localStorage.setItem(key, JSON.stringify(settings));
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}

/** applyTheme sets the colour scheme of the document. */
export function applyTheme(theme: Settings["theme"]): void {
  document.documentElement.dataset.theme = theme;
}

const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const system: { dark: boolean } = $state({ dark: darkSystem.matches });
darkSystem.addEventListener("change", (event) => (system.dark = event.matches));

/** theme is what is shown now: the chosen theme, else that of the system. */
export function theme(): Theme {
  if (settings.theme !== "system") return settings.theme;
  return system.dark ? "dark" : "light";
}

const reduced = matchMedia("(prefers-reduced-motion: reduce)");

/** stillness reports whether the user asked for less motion. */
export const stillness = (): boolean => reduced.matches;
