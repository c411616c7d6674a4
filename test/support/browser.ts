/** A real Chromium for tests of pages: the one in CHROME_PATH, else the one that npm installed. */
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { chromium as playwright, type Browser } from 'playwright-core';
import { onceARun } from './once-a-run.ts';

/**
 * Flags of the package that do not fit: a single process exits with the first page that is closed, each process takes a
 * third longer to start without a zygote, and without web security a browser sends no Origin and lets every page read
 * every other, unlike any user's browser.
 */
const UNWANTED = [
  '--single-process',
  '--no-zygote',
  '--disable-web-security',
  '--allow-running-insecure-content',
  '--disable-site-isolation-trials',
  '--ignore-gpu-blocklist',
  '--in-process-gpu',
  '--use-gl=angle',
  '--use-angle=swiftshader',
  '--enable-unsafe-swiftshader',
];

/**
 * A test's page lives for seconds, so optimizing its code would cost more than it saves: a sixth of the
 * renderer's time.
 */
const FOR_SHORT_LIVES = '--js-flags=--no-opt,--no-maglev';

export async function startBrowser(): Promise<Browser> {
  return playwright.launch({
    executablePath: process.env['CHROME_PATH'] ?? (await unpack()),
    args: [
      ...chromium.args.filter((arg) => !UNWANTED.includes(arg)),
      '--disable-gpu',
      FOR_SHORT_LIVES,
    ],
    headless: true,
  });
}

/** The package unpacks into TMPDIR, and would use a file there that another process still writes. */
async function unpack(): Promise<string> {
  const folder = await onceARun('chromium', async (into) => {
    const usual = process.env['TMPDIR'];
    process.env['TMPDIR'] = into;
    try {
      await chromium.executablePath();
    } finally {
      if (usual === undefined) delete process.env['TMPDIR'];
      else process.env['TMPDIR'] = usual;
    }
  });
  return join(folder, 'chromium');
}
