/**
 * The client's own deadline for each statement. `statement_timeout` is the server's, and a server that has gone
 * silent (a firewall that forgot the connection, a failover) can neither keep it nor say so: without this,
 * whoever waits for such a connection waits for ever. Past the deadline the connection is destroyed, and the
 * pool opens another one.
 */
import { BackendTerminatedError, type DriverFactory } from 'slonik';

export function withDeadline(createDriver: DriverFactory, deadlineMs: number): DriverFactory {
  return async (options) => {
    const driver = await createDriver(options);
    return {
      createClient: async () => {
        const client = await driver.createClient();
        return {
          ...client,
          query: async (text, values, queryOptions) => {
            const { promise, resolve, reject } =
              Promise.withResolvers<Awaited<ReturnType<typeof client.query>>>();
            const timer = setTimeout(() => {
              reject(
                new BackendTerminatedError(
                  new Error(`Postgres did not answer within ${deadlineMs} ms`),
                ),
              );
              // From here on every other statement on this connection fails at once, its ROLLBACK too.
              void client.destroy().catch(() => {});
            }, deadlineMs);
            client.query(text, values, queryOptions).then(resolve, reject);
            try {
              return await promise;
            } finally {
              clearTimeout(timer);
            }
          },
        };
      },
    };
  };
}
