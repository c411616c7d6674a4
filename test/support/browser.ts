/** A real Chromium for tests of pages: the one that CHROME_PATH names, else the one that npm brought. */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { chromium as playwright, type Browser } from 'playwright-core';

export async function startBrowser(): Promise<Browser> {
  return playwright.launch({
    executablePath: process.env['CHROME_PATH'] ?? (await unpack()),
    // A single process, which the package asks for, ends with the first page that is closed.
    args: chromium.args.filter((arg) => arg !== '--single-process'),
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
