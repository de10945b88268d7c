import { defineConfig, type Options } from 'tsup'
import { libraryPreset } from '../../tsup.preset'
import { buildPage } from './ui/build'

type Plugin = NonNullable<Options['esbuildPlugins']>[number]

/** The built page in the place of `built-assets.ts`: the handler needs no files, and so runs everywhere. */
function embedPage(): Plugin {
  const page = buildPage('production')
  return {
    name: 'embed-page',
    setup({ onLoad }) {
      onLoad({ filter: /built-assets\.ts$/ }, async () => {
        return { contents: `export const BUILT_ASSETS = ${JSON.stringify(await page)}`, loader: 'ts' }
      })
    },
  }
}

export default defineConfig({ ...libraryPreset(), sourcemap: false, esbuildPlugins: [embedPage()] })
