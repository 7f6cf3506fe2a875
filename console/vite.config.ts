import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const SERVER = process.env.OPPOSABLE_URL ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  resolve: {
    alias: {
      "@rjsf/validator-ajv8": fileURLToPath(new URL("src/components/noValidator.ts", import.meta.url)),
    },
  },
  build: {
    outDir: "../src/opposable/web/console",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox121", "safari17.5"],
    rolldownOptions: {
      output: {
        codeSplitting: {
          // Few large chunks are smaller than many small ones: what every page needs, and what most need.
          groups: [
            {
              name: "vendor",
              test: /node_modules\/(react|react-dom|react-i18next|i18next|scheduler|@tanstack\/(?!\S*virtual)[\w-]+)\//,
            },
            { name: "components", test: /node_modules\/@(mantine|tabler|floating-ui)/, minShareCount: 12 },
          ],
        },
      },
    },
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    chunkSizeWarningLimit: 700,
  },
  server: {
    proxy: Object.fromEntries(["/api", "/agent", "/skills", "/readyz"].map((path) => [path, SERVER])),
  },
});
