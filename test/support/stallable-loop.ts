/** Loaded into a process by `node --import`: at each SIGURG its event loop does nothing for `STALL_MS`. */
const stallMs = Number(process.env['STALL_MS']);
const never = new Int32Array(new SharedArrayBuffer(4));

process.on('SIGURG', () => {
  Atomics.wait(never, 0, 0, stallMs);
});
