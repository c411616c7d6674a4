/** The options that most commands about the database share. */
import type { Command } from 'commander';
import { dataDirOption } from './data-dir-option.ts';

export interface Common {
  readonly json: boolean;
  readonly dataDir: string;
}

export const common = (command: Command) =>
  command.option('--json', 'print JSON', false).addOption(dataDirOption());
