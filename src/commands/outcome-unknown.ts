/**
 * The failure of a command that may have done what it was asked to: the connection was lost before PostgreSQL
 * confirmed it. Has no imports of its own, because src/cli.ts loads it for every command.
 */
const EXIT_CODE = 3;

export class OutcomeUnknownError extends Error {
  override readonly name = 'OutcomeUnknownError';
  readonly exitCode = EXIT_CODE;

  /** `advice`: how to find out, or how to repeat the command safely. */
  constructor(advice: string, options?: ErrorOptions) {
    super(
      `The connection to PostgreSQL was lost before it confirmed the change, which may have been made. ${advice}`,
      options,
    );
  }
}
