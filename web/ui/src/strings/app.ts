/** What both faces say. */
export const app = {
  name: "Conclave",
  loading: "Loading…",
  noCode: "Part of this page could not be loaded. Check the connection, then reload the page.",
  theme: "Colours",
  themes: { system: "as the system", light: "light", dark: "dark" },
  shortcuts: "Single-key shortcuts",
  settings: "Settings",
  faces: { dashboard: "Cluster", lab: "Lab" },
  close: "Close",
} as const;
