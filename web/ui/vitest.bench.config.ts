import { defineConfig } from "vitest/config";

/** The figures of the page. They are printed, and fail nothing: machines differ. */
export default defineConfig({
  test: { include: ["tests/**/*.bench.ts"], testTimeout: 120_000, hookTimeout: 120_000, fileParallelism: false, disableConsoleIntercept: true },
});
