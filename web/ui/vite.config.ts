import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { build, type Plugin } from "vite";
import { defineConfig } from "vitest/config";
import type { Palette } from "./src/tokens/tokens";

const target = ["chrome123", "firefox128", "safari17.5"];
const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/**
 * tokens offers the colours of package trace as CSS variables, so that the page
 * and the SVG files use the same values.
 */
function tokens(): Plugin {
  const id = "virtual:tokens.css";
  return {
    name: "tokens",
    resolveId: (source) => (source === id ? "\0" + id : undefined),
    load(source) {
      if (source !== "\0" + id) return undefined;
      const file = path("src/tokens/tokens.json");
      this.addWatchFile(file);
      const { colours } = JSON.parse(readFileSync(file, "utf8")) as { colours: Palette };
      const lines = Object.entries(colours).map(([name, c]) => `  --${name}: light-dark(${c.light}, ${c.dark});`);
      return `:root {\n${lines.join("\n")}\n}\n`;
    },
  };
}

/**
 * replay builds the code of a file that plays one run: a script and a style of their own,
 * which the page puts into the file. They import nothing, since a file on a disk cannot.
 */
function replay(): Plugin {
  return {
    name: "replay",
    apply: "build",
    async generateBundle() {
      const built = await build({
        configFile: false,
        root: path("."),
        logLevel: "warn",
        plugins: [svelte({ configFile: path("svelte.config.js") }), tokens()],
        build: {
          write: false,
          target,
          cssCodeSplit: false,
          lib: { entry: path("src/replay/main.ts"), formats: ["iife"], name: "replay" },
        },
      });
      const outputs = Array.isArray(built) ? built.flatMap((one) => one.output) : "output" in built ? built.output : [];
      for (const one of outputs) {
        if (one.type === "chunk") this.emitFile({ type: "asset", fileName: "assets/replay.js", source: one.code });
        else if (one.fileName.endsWith(".css")) this.emitFile({ type: "asset", fileName: "assets/replay.css", source: one.source });
      }
    },
  };
}

export default defineConfig({
  root: path("."),
  base: "./",
  plugins: [svelte(), tokens(), replay()],
  build: {
    outDir: path("../dist"),
    emptyOutDir: true,
    target,
    modulePreload: { polyfill: false },
    // The built files are committed: their names must not change with their content.
    rolldownOptions: {
      input: { page: path("index.html"), labPage: path("lab/index.html") },
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
        // What is loaded together is one file: a small file cannot be packed well.
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            { name: "tables", test: /src\/tables\// },
            { name: "recording", test: /src\/replay\// },
          ],
        },
      },
    },
  },
  worker: {
    format: "es",
    rolldownOptions: { output: { entryFileNames: "assets/[name].js" } },
  },
  test: { include: ["src/**/*.test.ts"] },
});
