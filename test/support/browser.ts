/** A real Chromium for tests of pages: the one that CHROME_PATH names, else the one that npm brought. */
import chromium from '@sparticuz/chromium';
import { chromium as playwright, type Browser } from 'playwright-core';

export async function startBrowser(): Promise<Browser> {
  const given = process.env['CHROME_PATH'];
  return playwright.launch({
    executablePath: given ?? (await chromium.executablePath()),
    // A single process, which the package asks for, ends with the first page that is closed.
    args: chromium.args.filter((arg) => arg !== '--single-process'),
    headless: true,
  });
}
