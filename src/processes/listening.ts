/** What a process says when it cannot listen: the system's error names neither setting. */
interface Address {
  readonly host: string;
  readonly setting: 'PORT' | 'METRICS_PORT';
  readonly port: number;
}

export function listeningAt<T>(
  { host, setting, port }: Address,
  listening: Promise<T>,
): Promise<T> {
  return listening.catch((error: Error) => {
    throw new Error(`cannot listen at HOST ${host}, ${setting} ${port}: ${error.message}`, {
      cause: error,
    });
  });
}
