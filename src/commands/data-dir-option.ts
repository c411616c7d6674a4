/** `--data-dir`, the data directory of the embedded start: the same option for every command that has it. */
import { resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { DEFAULT_DATA_DIR } from '../embedded/data-dir.ts';

export function dataDirOption(): Option {
  return new Option('--data-dir <path>', 'data directory of the embedded start')
    .env('DATA_DIR')
    .default(DEFAULT_DATA_DIR, '.farebox in the checkout')
    .argParser(pathOf);
}

function pathOf(text: string): string {
  // It would be the current directory.
  if (text.trim() === '') throw new InvalidArgumentError('It must name a directory.');
  return resolve(text);
}
