import { defineConfig } from "vitest/config";

/** The flows play in a browser, against the real program. */
export default defineConfig({
  test: {
    include: ["tests/**/*.flow.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false,
    retry: 0,
    expect: { poll: { timeout: 15_000 } },
  },
});
