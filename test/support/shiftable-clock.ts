/**
 * Loaded into an API process by `node --import`: its clock is `CLOCK_AHEAD_MS` ahead, from the start or, with
 * `CLOCK_SHIFTS_LATER`, from one SIGUSR2 to the next.
 */
const now = Date.now;
const aheadMs = Number(process.env['CLOCK_AHEAD_MS']);
let isShifted = process.env['CLOCK_SHIFTS_LATER'] === undefined;

Date.now = () => now() + (isShifted ? aheadMs : 0);
process.on('SIGUSR2', () => {
  isShifted = !isShifted;
});
