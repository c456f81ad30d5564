import { defineConfig } from "vitest/config";

/** The flows play in a browser, against the real program: each file with its own, two at a time. */
export default defineConfig({
  test: {
    include: ["tests/**/*.flow.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    retry: 0,
    expect: { poll: { timeout: 15_000 } },
  },
});
