/** `--data-dir`, the same for every command that has it: where the embedded start keeps its data. */
import { resolve } from 'node:path';
import { Option } from 'commander';

export function dataDirOption(): Option {
  return new Option('--data-dir <path>', 'where the embedded start keeps its data')
    .env('DATA_DIR')
    .default(resolve('.farebox'), '.farebox')
    .argParser((path) => resolve(path));
}
