/**
 * The client's own deadline for each statement. `statement_timeout` is enforced by the server, and a silent server (a
 * firewall that forgot the connection, a failover) cannot enforce or report it: without this deadline, callers on such
 * a connection would wait forever. Past the deadline the connection is destroyed, and the pool opens another one.
 */
import { BackendTerminatedError, type DriverFactory } from 'slonik';
import { giveUpAfter } from '../give-up-after.ts';

export function withDeadline(createDriver: DriverFactory, deadlineMs: number): DriverFactory {
  return async (options) => {
    const driver = await createDriver(options);
    return {
      createClient: async () => {
        const client = await driver.createClient();
        let silent: BackendTerminatedError | undefined;
        return {
          ...client,
          query: async (text, values, queryOptions) => {
            // The ROLLBACK after a COMMIT that was not answered: its own error would hide that the COMMIT may
            // have arrived.
            if (silent) throw silent;
            const { promise, resolve, reject } =
              Promise.withResolvers<Awaited<ReturnType<typeof client.query>>>();
            const stopWaiting = giveUpAfter(deadlineMs, () => {
              silent = new BackendTerminatedError(
                new Error(`Postgres did not answer within ${deadlineMs} ms`),
              );
              reject(silent);
              void client.destroy().catch(() => {});
            });
            client.query(text, values, queryOptions).then(resolve, reject);
            try {
              return await promise;
            } finally {
              stopWaiting();
            }
          },
        };
      },
    };
  };
}
