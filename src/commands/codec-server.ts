/** `farebox codec-server`: decrypts payloads for the Temporal UI, on the operator's machine. */
import { InvalidArgumentError, type Command } from 'commander';
import { readTemporalConfig } from '../config.ts';
import { environmentOf } from '../embedded/environment.ts';
import { serveCodec } from '../temporal/codec-server.ts';
import { payloadCodec } from '../temporal/payload-codec.ts';
import { dataDirOption } from './data-dir-option.ts';
import { CommandError } from './database-command.ts';
import { untilStopped } from './until-stopped.ts';

interface CodecServerOptions {
  readonly port: number;
  readonly dataDir: string;
}

export function register(command: Command): void {
  command
    .option('--port <port>', 'the port on this machine; by default a free one', portOf, 0)
    .addOption(dataDirOption())
    .action(async ({ port, dataDir }: CodecServerOptions) => {
      const { payloadKeys, uiUrl } = readTemporalConfig(await environmentOf(dataDir));
      if (!payloadKeys) {
        throw new CommandError('TEMPORAL_PAYLOAD_KEYS is not set: payloads are not encrypted.');
      }
      const uiOrigin = uiUrl === undefined ? undefined : new URL(uiUrl).origin;
      const server = await serveCodec(payloadCodec(payloadKeys), { port, uiOrigin });
      process.stdout.write(`${server.url}\n`);
      await untilStopped();
      await server.close();
    });
}

function portOf(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new InvalidArgumentError('It must be a port from 0 to 65535.');
  return port;
}
