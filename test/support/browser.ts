/** A real Chromium for tests of pages: the one that CHROME_PATH names, else the one that npm brought. */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { chromium as playwright, type Browser } from 'playwright-core';

/**
 * Of what the package asks for: a single process ends with the first page that is closed, and without web security a
 * browser sends no Origin and lets every page read every other, so that nothing here would be as people have it.
 */
const UNWANTED = [
  '--single-process',
  '--disable-web-security',
  '--allow-running-insecure-content',
  '--disable-site-isolation-trials',
];

export async function startBrowser(): Promise<Browser> {
  return playwright.launch({
    executablePath: process.env['CHROME_PATH'] ?? (await unpack()),
    args: chromium.args.filter((arg) => !UNWANTED.includes(arg)),
    headless: true,
  });
}

/**
 * Unpacks into a folder of this process: the package takes a file in TMPDIR for whole that another one still writes.
 * The run's folder goes when the run ends.
 */
async function unpack(): Promise<string> {
  const usual = process.env['TMPDIR'];
  process.env['TMPDIR'] = await mkdtemp(join(process.env['TEST_FOLDER'] ?? '', 'chromium-'));
  try {
    return await chromium.executablePath();
  } finally {
    if (usual === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = usual;
  }
}
