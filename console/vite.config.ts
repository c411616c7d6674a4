/** Builds the console into `.dist`, with a Brotli copy beside each file. The API serves both unchanged. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const brotli = (): Plugin => ({
  name: 'farebox-brotli',
  writeBundle({ dir = '' }, bundle) {
    for (const fileName of Object.keys(bundle)) {
      if (!/\.(js|css|html|svg)$/.test(fileName)) continue;
      const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
      const packed = brotliCompressSync(readFileSync(join(dir, fileName)), options);
      writeFileSync(join(dir, `${fileName}.br`), packed);
    }
  },
});

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  plugins: [react(), brotli()],
  publicDir: false,
  build: {
    outDir: process.env['CONSOLE_OUT_DIR'] ?? '.dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 800,
    rolldownOptions: {
      output: {
        // What most pages share is one file: twenty small ones would keep the data waiting for a connection.
        codeSplitting: {
          groups: [{ name: 'shared', test: /node_modules/, minShareCount: 8 }],
        },
      },
    },
  },
});
