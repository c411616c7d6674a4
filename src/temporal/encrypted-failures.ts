/** Failures whose messages and stack traces are payloads, so that the payload codec encrypts them too. */
import { DefaultFailureConverter } from '@temporalio/common';

/** The name by which `failureConverterPath` finds it. */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
