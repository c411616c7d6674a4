/** The code blocks of a page of the documentation, with the marker that stands before one that cannot run. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

export interface Block {
  readonly language: string;
  readonly code: string;
  /** The number of its first line in the page. */
  readonly line: number;
  /** From `<!-- not run: the reason -->` before it. */
  readonly notRunBecause: string | undefined;
}

export async function blocksOf(page: string): Promise<Block[]> {
  const text = await readFile(join(ROOT, page), 'utf8');
  const fences = text.match(/^```/gm)?.length ?? 0;
  const found = text.matchAll(/(?:^<!-- not run: ([^\n]+) -->\n+)?^```(\w*)\n(.*?)^```$/gms);
  const blocks = [...found];
  assert.equal(blocks.length * 2, fences, `${page} has blocks that are not seen`);
  return blocks.map(({ 1: reason, 2: language = '', 3: code = '', index }) => ({
    language,
    code,
    line: text.slice(0, index).split('\n').length,
    notRunBecause: reason,
  }));
}
