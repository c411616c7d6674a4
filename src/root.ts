/** The folder that the files of this release are in: a checkout, or /app of an image. */
import { findPackageJSON } from 'node:module';
import { dirname } from 'node:path';

/** This code may be in src, or in the program that scripts/build-program.ts builds from it. */
const PACKAGE = findPackageJSON(import.meta.url);
if (PACKAGE === undefined) throw new Error('the package.json of this release is missing');

export const ROOT = dirname(PACKAGE);
