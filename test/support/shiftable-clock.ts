/**
 * Loaded into an API process by `node --import`: its clock is `CLOCK_AHEAD_MS` ahead, from the start or, with
 * `CLOCK_SHIFTS_LATER`, from one SIGUSR2 to the next. The UUIDs that it makes have the time of that clock, too.
 */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

const now = Date.now;
const { randomUUIDv7 } = crypto;
const aheadMs = Number(process.env['CLOCK_AHEAD_MS']);
let isShifted = process.env['CLOCK_SHIFTS_LATER'] === undefined;

Date.now = () => now() + (isShifted ? aheadMs : 0);
// Node reads the clock for it by itself.
crypto.randomUUIDv7 = (options) => {
  const time = Date.now().toString(16).padStart(12, '0');
  const id = `${time.slice(0, 8)}-${time.slice(8)}${randomUUIDv7(options).slice(13)}`;
  return id as ReturnType<typeof randomUUIDv7>;
};
syncBuiltinESMExports();
process.on('SIGUSR2', () => {
  isShifted = !isShifted;
});
