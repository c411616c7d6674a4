/**
 * Loaded into a process by `node --import`: the source file in `PLANTED_BUG` is changed as that says before it runs. A
 * process whose file does not have the passage exactly once does not start.
 */
import { registerHooks } from 'node:module';

const { file, from, to } = JSON.parse(process.env['PLANTED_BUG'] ?? '{}') as Record<string, string>;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!file || !url.endsWith(`/${file}`)) return loaded;
    const text = Buffer.from((loaded.source ?? '') as string).toString();
    const parts = text.split(from ?? '');
    if (parts.length !== 2) throw new Error(`${file} has the passage ${parts.length - 1} times`);
    return { ...loaded, source: parts.join(to) };
  },
});
