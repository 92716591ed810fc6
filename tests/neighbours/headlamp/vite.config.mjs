import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import svgr from 'vite-plugin-svgr';

export default defineConfig({
  plugins: [react(), svgr()],
  define: { global: 'globalThis', 'process.env': '{}' },
  build: {
    chunkSizeWarningLimit: 100000,
    dynamicImportVarsOptions: { exclude: [] }, // the front end loads its translations by name
    minify: false,
    reportCompressedSize: false,
    target: 'es2022',
  },
});
