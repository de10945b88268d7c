/** The condition that points at sources helps inside the workspace only; published manifests go without it. */
function withoutSourceCondition(manifest) {
  const { exports } = manifest
  if (exports === undefined) return manifest
  const published = Object.entries(exports).map(([path, target]) => {
    if (typeof target === 'string') return [path, target]
    const { '@coji/durably-source': _source, ...conditions } = target
    return [path, conditions]
  })
  return { ...manifest, exports: Object.fromEntries(published) }
}

module.exports = { hooks: { beforePacking: withoutSourceCondition } }
