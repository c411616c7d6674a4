/** A real Chromium for tests of pages: the one that CHROME_PATH names, else the one that npm brought. */
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
  const given = process.env['CHROME_PATH'];
  return playwright.launch({
    executablePath: given ?? (await chromium.executablePath()),
    args: chromium.args.filter((arg) => !UNWANTED.includes(arg)),
    headless: true,
  });
}
