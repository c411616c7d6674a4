/** `--data-dir`, the data directory of the embedded start: the same option for every command that has it. */
import { resolve } from 'node:path';
import { Option } from 'commander';
import { DEFAULT_DATA_DIR } from '../embedded/data-dir.ts';

export function dataDirOption(): Option {
  return new Option('--data-dir <path>', 'data directory of the embedded start')
    .env('DATA_DIR')
    .default(DEFAULT_DATA_DIR, '.farebox in the checkout')
    .argParser((path) => resolve(path));
}
