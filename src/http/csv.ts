/**
 * Exports: CSV (RFC 4180, UTF-8), written page by page as the client reads, so that it needs the memory of one page for
 * any number of rows. A cell that a spreadsheet would interpret as a formula is prefixed with a quote. A failure midway
 * breaks the connection, so that nobody mistakes a part for the whole.
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { stringify, type Options } from 'csv-stringify/sync';
import type { Context } from 'koa';
import { asMicros, decimalOf } from '../domain/money.ts';
import { headersOfEvery, requestIdOf } from './respond.ts';

/** A bigint is micro-dollars, a number is a count: a leading minus does not make them formulas. */
export type Cell = string | number | bigint;

export interface Export {
  /** The file's name without its extension. */
  readonly name: string;
  readonly header: readonly string[];
  readonly pages: AsyncIterable<readonly (readonly Cell[])[]>;
}

/** A few milliseconds of work for each page, because charges wait meanwhile. */
const PAGE_ROWS = 500;

/**
 * Where a spreadsheet would see a formula, also in quotes: at the start, after white space, after a line break, and
 * after a semicolon, which separates cells in countries that write 1,5. The library's own option looks at the first
 * character only.
 */
const FORMULA_START = /(?<=^|;|\n|\r(?!\n))(?=["\s]*[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20])/gu;

const FORMAT: Options = {
  record_delimiter: '\r\n',
  // Quotes any line break, not only our delimiter: otherwise a lone one would end a row.
  quote_record_delimiter: true,
  cast: {
    string: (text) => text.replace(FORMULA_START, "'"),
    bigint: (micros) => decimalOf(asMicros(Number(micros))),
  },
};

/** Throws only before anything is sent. Later failures call `onFailure` and break the connection. */
export async function respondCsv(
  ctx: Context,
  { name, header, pages }: Export,
  onFailure: (error: unknown) => void,
): Promise<void> {
  const chunks = resetting(ctx, textOf(header, pages));
  const first = await chunks.next();
  ctx.respond = false;
  ctx.res.writeHead(200, {
    'Content-Type': 'text/csv; charset=utf-8; header=present',
    'Content-Disposition': `attachment; filename="${name}.csv"`,
    ...headersOfEvery(requestIdOf(ctx)),
    'Cache-Control': 'no-store',
  });
  ctx.res.write(first.value ?? '');
  try {
    // Counted in bytes, so that at most one page is read ahead of a slow client.
    await pipeline(Readable.from(chunks, { objectMode: false }), ctx.res);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') onFailure(error);
  }
}

/**
 * Resets the connection when the rest cannot be read. Without chunked encoding, as in HTTP/1.0, a connection that ends
 * normally ends the file.
 */
async function* resetting(
  { res }: Context,
  chunks: AsyncGenerator<string, undefined>,
): AsyncGenerator<string, undefined> {
  try {
    yield* chunks;
  } catch (error) {
    if (res.headersSent) res.socket?.resetAndDestroy();
    throw error;
  }
}

/** The first chunk has the header, and the first page if there is one. */
async function* textOf(
  header: Export['header'],
  pages: Export['pages'],
): AsyncGenerator<string, undefined> {
  let before = stringify([header], FORMAT);
  for await (const rows of pages) {
    yield before + stringify(rows as Cell[][], FORMAT);
    before = '';
  }
  if (before !== '') yield before;
}

/** A list, with one statement for each page: a snapshot held for minutes would keep dead rows from being vacuumed. */
export async function* pagesOf<T>(
  read: (limit: number, last?: T) => Promise<readonly T[]>,
  cellsOf: (row: T) => readonly Cell[],
): AsyncGenerator<(readonly Cell[])[], void> {
  let last: T | undefined;
  for (;;) {
    const rows = await read(PAGE_ROWS, last);
    if (rows.length > 0) yield rows.map(cellsOf);
    if (rows.length < PAGE_ROWS) return;
    last = rows.at(-1);
  }
}

/** Rows that are in memory, in as many pages. */
export function* pagesOfRows(rows: readonly (readonly Cell[])[]) {
  for (let at = 0; at < rows.length; at += PAGE_ROWS) yield rows.slice(at, at + PAGE_ROWS);
}
