/** The folder that the files of this release are in: a checkout, or /app of an image. */
import { findPackageJSON } from 'node:module';
import { dirname } from 'node:path';

/** Found from wherever this code is: in src, or in the program that scripts/build-program.ts makes of it. */
export const ROOT = dirname(findPackageJSON(import.meta.url) ?? '');
