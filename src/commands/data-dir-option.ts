/** `--data-dir`, the data directory of the embedded start: the same option for every command that has it. */
import { resolve } from 'node:path';
import { Option } from 'commander';

export function dataDirOption(): Option {
  return new Option('--data-dir <path>', 'data directory of the embedded start')
    .env('DATA_DIR')
    .default(resolve('.farebox'), '.farebox')
    .argParser((path) => resolve(path));
}
