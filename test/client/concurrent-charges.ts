/** Forty charges at once through one client, in a separate process: for runtimes other than Node. */
import { Farebox } from '@farebox/client';

const farebox = new Farebox();
const apiKey = process.env['CONSUMER_KEY'];
const charges = await Promise.all(
  Array.from({ length: 40 }, () => farebox.charge({ apiKey, tool: 'elsewhere', amount: 0.01 })),
);
const checks = await Promise.all(charges.map(({ receipt }) => farebox.verifyReceipt(receipt)));
const valid = checks.filter((check) => check.valid).length;
process.stdout.write(JSON.stringify({ ids: charges.map(({ id }) => id), valid }));
