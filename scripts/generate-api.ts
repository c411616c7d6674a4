/** Writes docs/openapi.json, docs/events.md and client/api.d.ts: `npm run generate`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiFiles } from './api-files.ts';

for (const [path, content] of Object.entries(await apiFiles())) {
  writeFileSync(join(import.meta.dirname, '..', path), content);
}
