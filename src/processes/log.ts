/**
 * The log of a process: JSON lines on standard output. It never ends the process nor holds it up: a line that cannot be
 * written, because the disk is full, is dropped and counted. And nobody outside decides how long a line gets.
 */
import { writeSync } from 'node:fs';
import { pino, type DestinationStream, type Logger } from 'pino';

const STDOUT = 1;
/** Of one member of an error: a stack fits, a request's URL or body does not. */
const TEXT_LENGTH_MAX = 4_000;

export function createLog(name: string, level: string): Logger {
  return pino({ name, level, serializers: { err: boundedError } }, lines(STDOUT));
}

/** As pino has it, but without what was sent to us (`input` of a URL that is none), and bounded. */
function boundedError(error: unknown): unknown {
  const serialized: unknown = pino.stdSerializers.err(error as Error);
  if (typeof serialized !== 'object' || serialized === null) return serialized;
  // Its members are on its prototype, too.
  const { type, message, stack, code } = serialized as Record<string, unknown>;
  const own = Object.entries(serialized).filter(([key]) => key !== 'input' && key !== 'raw');
  const members = [...Object.entries({ type, message, stack, code }), ...own];
  return Object.fromEntries(members.map(([key, value]) => [key, bounded(value)]));
}

function bounded(value: unknown): unknown {
  return typeof value === 'string' ? value.slice(0, TEXT_LENGTH_MAX) : value;
}

function lines(fd: number): DestinationStream {
  let dropped = 0;
  return {
    write(line) {
      const lost = { level: 40, time: Date.now(), dropped, msg: 'log lines could not be written' };
      const text = dropped > 0 ? `${JSON.stringify(lost)}\n${line}` : line;
      try {
        writeSync(fd, text);
        dropped = 0;
      } catch {
        dropped += 1;
      }
    },
  };
}
