import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** Builds static files for the gateway, which serves them below `/console`. */
export default defineConfig({
  root: import.meta.dirname,
  base: "/console/",
  plugins: [react()],
  resolve: {
    // The condition `browser` selects the portable crypto engine of packages/dct. Its native engine does not run in a
    // browser.
    conditions: ["browser", "module", "import", "default"],
  },
  build: {
    outDir: "../gateway/console",
    emptyOutDir: true,
    target: "es2022",
    // Vite's polyfill is an inline script, which the page's policy refuses. Browsers of the target preload modules
    // without it.
    modulePreload: { polyfill: false },
    // An inlined file would be a data URL, which the policy of the page refuses.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 900,
  },
});
