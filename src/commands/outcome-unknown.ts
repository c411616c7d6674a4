/**
 * The failures of a command that may have done what it was asked to, or did it and could not say so. Has no imports of
 * its own, because src/cli.ts loads it for every command.
 */
const EXIT_CODE = 3;

/** The command did something, and its output, such as new keys, could not be written. */
export class UnwrittenError extends Error {
  override readonly name = 'UnwrittenError';
  readonly exitCode = EXIT_CODE;
}

/** The connection was lost before PostgreSQL confirmed the change. */
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
