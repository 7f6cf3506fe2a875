import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const SERVER = process.env.OPPOSABLE_URL ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/opposable/web/console",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox121", "safari17.5"],
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    chunkSizeWarningLimit: 700,
  },
  server: {
    proxy: Object.fromEntries(["/api", "/agent", "/skills", "/readyz"].map((path) => [path, SERVER])),
  },
});
