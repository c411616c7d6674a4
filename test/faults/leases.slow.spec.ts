/** The short form of `npm run test:faults:leases`. */
import { runLeaseFaults } from './leases.ts';

describe('leases, while processes are killed', () => {
  it('refuse no call, overspend nothing, and charge each call once', () =>
    runLeaseFaults({ awaySeconds: 2, report: () => {} }));
});
