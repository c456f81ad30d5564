/** The component that has each class. */
const taken = new Map();

/**
 * The class that scopes the style of a component. It is short, because a hash cannot be
 * compressed, and the files of a component repeat it.
 */
function cssHash({ hash, css, filename }) {
  const name = `s-${hash(css).slice(-3)}`;
  const other = taken.get(name) ?? filename;
  if (other !== filename) throw new Error(`${filename} and ${other} have the class ${name}: take one character more`);
  taken.set(name, filename);
  return name;
}

/** @type {import("@sveltejs/vite-plugin-svelte").SvelteConfig} */
export default {
  compilerOptions: { runes: true, cssHash },
};
