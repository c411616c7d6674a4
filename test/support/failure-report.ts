/**
 * What to read when a test failed where nobody can look again, as in CI: the last lines that the servers of its file
 * have logged, and what a page showed and waited for. The reporter prints it at the end of the run.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Page, Request } from 'playwright-core';

const LINES_PER_LOG = 6;
const LINE_LENGTH_MAX = 300;
const PAGE_LENGTH_MAX = 1_200;

const logFiles = new Set<string>();

/** A test file has started a server, which logs to this file. */
export function noteLog(file: string): void {
  logFiles.add(file);
}

/** Before the next file of this process: its servers are others. */
export function forgetLogs(): void {
  logFiles.clear();
}

/** Adds the ends of the logs, and what a page shows, to the report of this run. */
export function reportFailure(test: Pick<Mocha.Test, 'fullTitle'>, seen: string): void {
  const report = reportFile();
  if (report && seen !== '')
    appendFileSync(report, `${test.fullTitle()}:\n${seen.replaceAll(/^/gm, '  ')}\n`);
}

/** The reports of all failed tests of this run, from all of its processes. */
export function readReport(): string {
  const report = reportFile();
  return report && existsSync(report) ? readFileSync(report, 'utf8') : '';
}

/** Undefined where a run has no set-up. */
function reportFile(): string | undefined {
  const folder = process.env['TEST_FOLDER'];
  return folder && join(folder, 'failures.txt');
}

/** The last lines of each log. */
export function logTails(): string {
  return [...logFiles]
    .filter((file) => existsSync(file))
    .map(tailOf)
    .join('');
}

function tailOf(file: string): string {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(-LINES_PER_LOG);
  const cut = lines.map((line) => `  ${line.slice(0, LINE_LENGTH_MAX)}\n`);
  return `${basename(file)} ends with:\n${cut.join('')}`;
}

/** The requests of a page that have no answer yet. */
export function followRequests(page: Page): ReadonlySet<Request> {
  const waiting = new Set<Request>();
  page.on('request', (request) => waiting.add(request));
  page.on('requestfinished', (request) => waiting.delete(request));
  page.on('requestfailed', (request) => waiting.delete(request));
  return waiting;
}

/** Never fails: a page may have been closed, or may not answer. */
export async function describePage(page: Page, waiting: ReadonlySet<Request>): Promise<string> {
  const text = await page
    .locator('body')
    .innerText({ timeout: 5_000 })
    .catch((error: unknown) => `no text: ${String(error)}`);
  const asked = [...waiting].map((request) => `${request.method()} ${request.url()}`);
  return (
    `the page at ${page.url()} waits for ${asked.join(', ') || 'no answer'} and shows:\n` +
    `${text.replaceAll(/\s*\n\s*/g, ' | ').slice(0, PAGE_LENGTH_MAX)}\n`
  );
}
